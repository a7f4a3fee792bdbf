// A small application that exercises what a fisk application can declare, and what a child process can do to its parent.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/choria-io/fisk"
)

func main() {
	app := fisk.New("app", "Exercises a harness for command-line applications")
	app.Version("1.2.3")
	app.Author("the fixtures")

	g := &globals{}
	app.Flag("context", "Which context to use").StringVar(&g.Context)
	app.Flag("trace", "Traces what happens").BoolVar(&g.Trace)
	app.Flag("zone", "Limits to a zone, may be repeated").StringsVar(&g.Zones)
	app.Flag("limit", "The most results").Default("10").IntVar(&g.Limit)
	app.Flag("backdoor", "Not meant to be seen").Hidden().StringVar(&g.Backdoor)

	echoCommand(app, g)
	tagged(app)
	traps(app)
	behaviour(app)
	variant(app, os.Getenv("FIXTURE_VARIANT"), g)

	app.MustParseWithUsage(os.Args[1:])
}

type globals struct {
	Context  string   `json:"context,omitempty"`
	Trace    bool     `json:"trace,omitempty"`
	Zones    []string `json:"zone,omitempty"`
	Limit    int      `json:"limit,omitempty"`
	Backdoor string   `json:"backdoor,omitempty"`
	Site     string   `json:"site,omitempty"`
}

// show prints what was parsed, with the arguments as they arrived.
func show(parsed map[string]any) error {
	parsed["argv"] = os.Args[1:]
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(parsed)
}

// ran prints the command that ran, for commands that do nothing else.
func ran(name string) fisk.Action {
	return func(*fisk.ParseContext) error {
		return show(map[string]any{"ran": name})
	}
}

// tagged are commands whose tags or place in the tree decide whether they are tools.
func tagged(app *fisk.Application) {
	app.Command("status", "Shows the state").Tag("impact:ro").Action(ran("status"))
	app.Command("update", "Updates the state").Tag("impact:rw").Action(ran("update"))
	app.Command("restart", "Restarts it").Tag("ai:confirm", "impact:rw").Action(ran("restart"))
	app.Command("purge", "Removes everything").Tag("ai:confirm", "impact:destructive").Action(ran("purge"))
	app.Command("destroy", "Never for a model").Tag("ai:deny").Action(ran("destroy"))
	app.Command("secret", "Hidden").Hidden().Action(ran("secret"))

	admin := app.Command("admin", "Never for a model, whatever is below").Tag("ai:deny")
	admin.Command("wipe", "Wipes").Tag("impact:rw").Action(ran("admin wipe"))
	admin.Command("user", "Users").Command("add", "Adds").Action(ran("admin user add"))

	change := app.Command("change", "Needs agreement, whatever is below").Tag("ai:confirm")
	change.Command("plan", "Plans").Tag("impact:ro").Action(ran("change plan"))
	change.Command("apply", "Applies").Tag("impact:rw").Action(ran("change apply"))

	below := app.Command("below", "A group that is not shown").Hidden()
	below.Command("visible", "Not hidden itself").Action(ran("below visible"))

	var region string
	region = "none"
	site := app.Command("site", "A group with flags of its own")
	site.Flag("region", "Where").Required().StringVar(&region)
	site.Flag("outfile", "Writes there").String()
	site.Command("list", "Lists").Action(func(*fisk.ParseContext) error {
		return show(map[string]any{"ran": "site list", "region": region})
	})

	pick := app.Command("pick", "A group with a default")
	var chosen string
	one := pick.Command("one", "The default").Default().Action(func(*fisk.ParseContext) error {
		return show(map[string]any{"ran": "pick one", "thing": chosen})
	})
	one.Arg("thing", "What").StringVar(&chosen)
	pick.Command("two", "Another").Alias("second").Action(ran("pick two"))
}

// variant adds what cannot be in an application that others use too.
func variant(app *fisk.Application, name string, g *globals) {
	switch name {
	case "alias":
		// The earlier command's alias takes the later one's name.
		app.Command("erase", "Erases").Alias("list").Action(ran("erase"))
		app.Command("list", "Lists").Tag("impact:ro").Action(ran("list"))
	case "required":
		app.Flag("site", "Required everywhere").Required().StringVar(&g.Site)
	case "":
	default:
		fmt.Fprintln(os.Stderr, "unknown variant", strings.ToUpper(name))
		os.Exit(2)
	}
}

// An application on a release of fisk that knows no tags, no completions and no schemas.
package main

import (
	"encoding/json"
	"os"

	"github.com/choria-io/fisk"
)

func show(parsed map[string]any) error {
	parsed["argv"] = os.Args[1:]
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(parsed)
}

func main() {
	app := fisk.New("old", "An application on an old release")
	app.Version("0.1.0")
	context := app.Flag("context", "Which context to use").String()

	echo := app.Command("echo", "Prints what it understood")
	text := echo.Flag("text", "Any text").String()
	count := echo.Flag("count", "How many").Int()
	names := echo.Flag("name", "Names").Strings()
	force := echo.Flag("force", "Without a question").UnNegatableBool()
	colour := echo.Flag("colour", "In colour").Default("true").Bool()
	first := echo.Arg("first", "The first").Default("one").String()
	rest := echo.Arg("rest", "The rest").Strings()
	echo.Action(func(*fisk.ParseContext) error {
		return show(map[string]any{
			"text": *text, "count": *count, "name": *names, "force": *force, "colour": *colour, "first": *first, "rest": *rest, "context": *context,
		})
	})

	group := app.Command("group", "A group")
	group.Command("one", "The first").Action(func(*fisk.ParseContext) error { return show(map[string]any{"ran": "group one"}) })
	group.Command("two", "The second").Hidden().Action(func(*fisk.ParseContext) error { return show(map[string]any{"ran": "group two"}) })

	app.MustParseWithUsage(os.Args[1:])
}

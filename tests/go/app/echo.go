package main

import (
	"time"

	"github.com/choria-io/fisk"
)

// echoCommand prints as JSON what it understood: one property per flag and argument.
func echoCommand(app *fisk.Application, g *globals) {
	echo := app.Command("echo", "Prints what it understood").HelpLong("Every kind of value that a command can take.")
	echo.Cheat("echo", "app echo --text=hello -- first 2 more words")

	text := echo.Flag("text", "Any text").Short('t').String()
	mode := echo.Flag("mode", "How").Enum("fast", "slow")
	level := echo.Flag("level", "Hinted, not enforced").HintOptions("low", "high").String()
	count := echo.Flag("count", "How many").Int()
	small := echo.Flag("small", "A small number").Int8()
	port := echo.Flag("port", "A port").Uint16()
	size := echo.Flag("size", "A large number").Uint64()
	ratio := echo.Flag("ratio", "A share").Float64()
	wait := echo.Flag("wait", "How long").Duration()
	labels := echo.Flag("label", "Labels").StringMap()
	names := echo.Flag("name", "Names").Strings()
	modes := echo.Flag("modes", "Several ways").Enums("a", "b", "c")
	force := echo.Flag("force", "Without a question").UnNegatableBool()
	colour := echo.Flag("colour", "In colour").Default("true").Bool()
	sure := echo.Flag("sure", "On unless the environment says otherwise").Default("true").UnNegatableBool()
	quiet := echo.Flag("quiet", "Also from the environment").Envar("APP_QUIET").UnNegatableBool()
	verbose := echo.Flag("verbose", "More of it").Counter()
	hidden := echo.Flag("internal", "Not meant to be seen").Hidden().String()
	first := echo.Arg("first", "The first").Default("one").String()
	second := echo.Arg("second", "The second").Default("2").Int()
	third := echo.Arg("third", "The third").String()
	rest := echo.Arg("rest", "The rest").Strings()

	echo.Action(func(*fisk.ParseContext) error {
		parsed := map[string]any{
			"text": *text, "mode": *mode, "level": *level, "count": *count, "small": *small, "port": *port, "size": *size,
			"ratio": *ratio, "wait": int64(*wait / time.Nanosecond), "label": *labels, "name": *names, "modes": *modes,
			"force": *force, "colour": *colour, "sure": *sure, "quiet": *quiet, "verbose": *verbose, "internal": *hidden,
			"first": *first, "second": *second, "third": *third, "rest": *rest, "globals": g,
		}
		return show(parsed)
	})
}

// traps are declarations in which one thing could be read as another.
func traps(app *fisk.Application) {
	trap := app.Command("trap", "Names that look like negations of others")
	x := trap.Flag("x", "Negatable").Default("true").Bool()
	nox := trap.Flag("no-x", "A flag of its own").UnNegatableBool()
	y := trap.Flag("y", "Negatable").Default("true").Bool()
	noy := trap.Flag("no-y", "A hidden flag of its own").Hidden().String()
	word := trap.Arg("word", "A word").String()
	trap.Action(func(*fisk.ParseContext) error {
		return show(map[string]any{"x": *x, "no-x": *nox, "y": *y, "no-y": *noy, "word": *word})
	})

	same := app.Command("same", "A flag and an argument of one name")
	flag := same.Flag("source", "The flag").String()
	arg := same.Arg("source", "The argument").String()
	same.Action(func(*fisk.ParseContext) error {
		return show(map[string]any{"flag": *flag, "arg": *arg})
	})

	need := app.Command("need", "Requires much")
	a := need.Flag("alpha", "Required").Required().String()
	b := need.Flag("beta", "Required").Required().Int()
	c := need.Flag("gamma", "Optional").String()
	d := need.Arg("target", "Required").Required().String()
	e := need.Arg("more", "Required, at least one").Required().Strings()
	need.Action(func(*fisk.ParseContext) error {
		return show(map[string]any{"alpha": *a, "beta": *b, "gamma": *c, "target": *d, "more": *e})
	})
}

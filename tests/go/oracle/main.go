// Answers what fisk itself makes of a command's input: one JSON object per line in, one per line out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/choria-io/fisk"
)

type question struct {
	Model fisk.CmdModel   `json:"model"`
	Input json.RawMessage `json:"input"`
}

type answer struct {
	Args  []string `json:"args"`
	Error string   `json:"error,omitempty"`
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var q question
		a := answer{}
		if err := json.Unmarshal(line, &q); err != nil {
			a.Error = fmt.Sprintf("unreadable question: %v", err)
		} else if args, err := q.Model.ArgsFromJSON(q.Input); err != nil {
			a.Error = err.Error()
		} else {
			a.Args = args
		}
		if err := out.Encode(a); err != nil {
			return
		}
	}
}

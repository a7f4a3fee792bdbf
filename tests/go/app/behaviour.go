package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/choria-io/fisk"
)

// behaviour are commands that do to their parent what any child may.
func behaviour(app *fisk.Application) {
	app.Command("env", "Prints its environment").Action(func(*fisk.ParseContext) error {
		return show(map[string]any{"env": os.Environ()})
	})

	app.Command("stdin", "Reads its standard input to the end").Action(func(*fisk.ParseContext) error {
		read, err := io.Copy(io.Discard, os.Stdin)
		return show(map[string]any{"bytes": read, "error": fmt.Sprint(err)})
	})

	sleep := app.Command("sleep", "Sleeps")
	how := sleep.Flag("for", "How long").Default("60s").Duration()
	deaf := sleep.Flag("deaf", "Ignores requests to end").UnNegatableBool()
	sleep.Action(func(*fisk.ParseContext) error {
		if *deaf {
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		}
		fmt.Printf("sleeping %d\n", os.Getpid())
		time.Sleep(*how)
		fmt.Println("awake")
		return nil
	})

	flood := app.Command("flood", "Writes much")
	size := flood.Flag("bytes", "How much").Default("1048576").Int64()
	stderr := flood.Flag("stderr", "Every second block to standard error").UnNegatableBool()
	flood.Action(func(*fisk.ParseContext) error {
		block := bytes.Repeat([]byte("0123456789abcde\n"), 4096)
		for left, i := *size, 0; left > 0; i++ {
			out := os.Stdout
			if *stderr && i%2 == 1 {
				out = os.Stderr
			}
			if int64(len(block)) > left {
				block = block[:left]
			}
			written, err := out.Write(block)
			if err != nil {
				return err
			}
			left -= int64(written)
		}
		return nil
	})

	app.Command("invalid", "Writes what is not UTF-8").Action(func(*fisk.ParseContext) error {
		_, err := os.Stdout.Write([]byte("good \xff\xfe\xc3( \xed\xa0\x80 \xe2\x82 end\n"))
		return err
	})

	app.Command("hostile", "Writes sequences that would drive a terminal").Action(func(*fisk.ParseContext) error {
		_, err := io.WriteString(os.Stdout, "\x1b[2J\x1b]0;title\x07\x1bPq\x1b\\\u202eevil\u202c \u200b\x9b31m\x1b]8;;http://x\x1b\\link\r\nover\b\bwritten \x1b[")
		return err
	})

	exit := app.Command("exit", "Ends with a code")
	code := exit.Arg("code", "The code").Default("1").Int()
	exit.Action(func(*fisk.ParseContext) error {
		fmt.Fprintln(os.Stderr, "to standard error")
		fmt.Println("to standard output")
		os.Exit(*code)
		return nil
	})

	kill := app.Command("signal", "Kills itself")
	number := kill.Arg("number", "The signal").Default("9").Int()
	kill.Action(func(*fisk.ParseContext) error {
		if err := syscall.Kill(os.Getpid(), syscall.Signal(*number)); err != nil {
			return err
		}
		time.Sleep(time.Minute)
		return nil
	})

	write := app.Command("write", "Writes a file")
	path := write.Arg("path", "Where").Required().String()
	content := write.Flag("content", "What").Default("written\n").String()
	write.Action(func(*fisk.ParseContext) error {
		file, err := os.OpenFile(*path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := file.WriteString(*content); err != nil {
			return err
		}
		return file.Close()
	})

	orphan := app.Command("orphan", "Ends while a child of its own keeps its output open")
	stay := orphan.Flag("for", "How long the child stays").Default("60s").String()
	away := orphan.Flag("away", "The child leaves the process group").UnNegatableBool()
	orphan.Action(func(*fisk.ParseContext) error {
		child := exec.Command("/proc/self/exe", "sleep", "--for="+*stay, "--deaf")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if *away {
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Printf("left %d behind\n", child.Process.Pid)
		return nil
	})

	app.Command("privileges", "Prints what it may do").Action(func(*fisk.ParseContext) error {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return err
		}
		facts := map[string]any{"pid": os.Getpid(), "pgid": syscall.Getpgrp(), "ppid": os.Getppid()}
		for _, line := range strings.Split(string(status), "\n") {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "NoNewPrivs", "Uid", "CapEff", "SigIgn", "SigBlk":
				facts[name] = strings.TrimSpace(value)
			}
		}
		wd, _ := os.Getwd()
		facts["folder"] = wd
		files, err := os.ReadDir("/proc/self/fd")
		if err == nil {
			open := map[string]string{}
			for _, file := range files {
				open[file.Name()], _ = os.Readlink("/proc/self/fd/" + file.Name())
			}
			facts["open"] = open
		}
		return show(facts)
	})

	parent := app.Command("parent", "Tries to read its parent's environment and memory")
	needle := parent.Flag("needle", "What to look for").Required().String()
	parent.Action(func(*fisk.ParseContext) error {
		facts := map[string]any{}
		for _, name := range []string{"environ", "cmdline", "maps"} {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", os.Getppid(), name))
			facts[name] = map[string]any{"found": bytes.Contains(content, []byte(*needle)), "bytes": len(content), "error": fmt.Sprint(err)}
		}
		memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", os.Getppid()))
		facts["mem"] = fmt.Sprint(err)
		if err == nil {
			memory.Close()
		}
		return show(facts)
	})
}

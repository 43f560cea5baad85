//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// TestStarts prints the rows of starts alone.
func TestStarts(t *testing.T) {
	aligned := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer aligned.Flush()
	for _, l := range starts(t) {
		l.write(aligned)
		if !l.ok() && !(l.timed && testing.Short()) {
			t.Errorf("missed: %s", l.what)
		}
	}
}

// starts are the rows on starts with many servers: the whole list of fifty that were never started, the first call
// after a start from the store, and the processes of one server of both generations.
func starts(t *testing.T) []line {
	return append(append(coldList(t), firstCall(t)...), processesOfOne(t)...)
}

const legacyHello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// A legacyLine is a stateful client on a pipe, which hears of changed lists.
type legacyLine struct {
	in  io.Writer
	out *bufio.Reader
	id  int
}

// open does the handshake.
func (c *legacyLine) open() error {
	if _, err := io.WriteString(c.in, legacyHello); err != nil {
		return err
	}
	_, _, err := c.answer(0)
	return err
}

// call sends a request, and returns its answer. changed is set if a list changed meanwhile.
func (c *legacyLine) call(r request) (answer []byte, changed bool, err error) {
	c.id++
	r = r.legacy()
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d%s`+"\n", c.id, r.body); err != nil {
		return nil, false, err
	}
	if answer, changed, err = c.answer(c.id); err == nil {
		err = r.check(answer)
	}
	return answer, changed, err
}

// answer reads lines up to the answer with that id.
func (c *legacyLine) answer(id int) (answer []byte, changed bool, err error) {
	for {
		text, err := c.out.ReadBytes('\n')
		if err != nil {
			return nil, changed, err
		}
		var m struct {
			ID     *int
			Method string
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, changed, err
		}
		changed = changed || strings.HasSuffix(m.Method, "list_changed")
		if m.Method == "" && m.ID != nil && *m.ID == id {
			return text, changed, nil
		}
	}
}

// whole lists until all fifty servers are there: again at each word that a list changed.
func (c *legacyLine) whole(servers int) error {
	for {
		answer, changed, err := c.call(legacyList)
		if err != nil {
			return err
		}
		if bytes.Count(answer, []byte(`__blob"`)) == servers {
			return nil
		}
		for !changed {
			text, err := c.out.ReadBytes('\n')
			if err != nil {
				return err
			}
			changed = bytes.Contains(text, []byte("list_changed"))
		}
	}
}

var legacyList = request{"tools/list", "", []byte(`,"method":"tools/list","params":{}}`), []byte(`"tools"`)}

// manyLive are the rows of that many servers, which all are the program.
func manyLive(servers int, program string) []server {
	rows := make([]server, servers)
	for i := range rows {
		rows[i] = onStdio(fmt.Sprintf("s%02d", i), program)
	}
	return rows
}

// coldList is the time to the whole list of fifty servers that were never started, beside a program that starts the
// same fifty at once and lists them.
func coldList(t *testing.T) []line {
	const servers = 50
	var direct, through, cpu []float64
	for range min(rounds(), 7) {
		began := time.Now()
		startAndList(t, servers)
		direct = append(direct, float64(time.Since(began))/float64(time.Millisecond))

		config, store := configure(t, manyLive(servers, self(t))...)
		began = time.Now()
		p := start(t, serve(config, store))
		c := &legacyLine{in: p.in, out: p.out}
		if err := errors.Join(c.open(), c.whole(servers)); err != nil {
			t.Fatal(err)
		}
		through = append(through, float64(time.Since(began))/float64(time.Millisecond))
		cpu = append(cpu, processorTime(t, p.cmd.Process.Pid))
		p.stop()
	}
	return []line{{
		what: "whole list of 50 live servers, never started before ÷ directly", value: ratio(through, direct), bar: 1.6,
		subject: fmt.Sprintf("%.0f ms, our process %.0f ms CPU", median(through), median(cpu)),
		control: fmt.Sprintf("started at once and listed %.0f ms", median(direct)), format: "%.2f", timed: true,
	}}
}

// startAndList starts servers at once, does the handshake with each and lists it. They are ended when the test ends.
func startAndList(t *testing.T, servers int) {
	t.Helper()
	errs := make([]error, servers)
	ends := make([]func(), servers)
	var work sync.WaitGroup
	for i := range servers {
		work.Go(func() {
			cmd := exec.Command(self(t))
			cmd.Env = append(os.Environ(), roleVariable+"=upstream")
			in, inErr := cmd.StdinPipe()
			out, outErr := cmd.StdoutPipe()
			if errs[i] = errors.Join(inErr, outErr, cmd.Start()); errs[i] != nil {
				return
			}
			ends[i] = func() { in.Close(); cmd.Process.Kill(); cmd.Wait() }
			c := &legacyLine{in: in, out: bufio.NewReader(out)}
			if errs[i] = c.open(); errs[i] == nil {
				_, _, errs[i] = c.call(legacyList)
			}
		})
	}
	work.Wait()
	t.Cleanup(func() {
		for _, end := range ends {
			if end != nil {
				end()
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		end()
	}
	clear(ends)
}

// firstCall is the time from exec to the answer of a stateful client's first call, where the list is served from the
// store: of one live server, beside fifty that never say a word.
func firstCall(t *testing.T) []line {
	dead := filepath.Join(t.TempDir(), "dead")
	if err := os.WriteFile(dead, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var rows []server
	for i := range 50 {
		rows = append(rows, server{Name: fmt.Sprintf("dead%02d", i), Command: dead})
	}
	rows = append(rows, onStdio("up", self(t)))
	config, store := configure(t, rows...)
	var listed, called []float64
	for round := range 1 + min(rounds(), 9) {
		began := time.Now()
		p := start(t, serve(config, store))
		c := &legacyLine{in: p.in, out: p.out}
		if err := c.open(); err != nil {
			t.Fatal(err)
		}
		answer, changed, err := c.call(legacyList)
		list := time.Since(began)
		for err == nil && !bytes.Contains(answer, []byte("up__echo")) { // in the first round
			if !changed {
				_, err = c.out.ReadBytes('\n')
			}
			answer, changed, err = c.call(legacyList)
		}
		if err == nil {
			_, _, err = c.call(small("up__"))
		}
		if err != nil {
			t.Fatal(err)
		}
		call := time.Since(began)
		if round > 0 {
			listed = append(listed, float64(list)/float64(time.Millisecond))
			called = append(called, float64(call)/float64(time.Millisecond))
		}
		p.stop()
	}
	return []line{{
		what:    "first call of a legacy client after a start from the store, 50 dead servers beside it",
		subject: fmt.Sprintf("from exec; list after %.0f ms", median(listed)), value: median(called), bar: 120,
		format: "%.0f ms", timed: true,
	}}
}

// processesOfOne counts the processes of one server of both generations, which clients of both have called.
func processesOfOne(t *testing.T) []line {
	program := filepath.Join(t.TempDir(), "upstream")
	if err := os.Symlink(self(t), program); err != nil {
		t.Fatal(err)
	}
	config, store := configure(t, onStdio("up", program))
	p := start(t, serve(config, store))
	c := &legacyLine{in: p.in, out: p.out}
	if err := errors.Join(c.open(), c.whole(1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := c.call(small("up__")); err != nil {
			t.Fatal(err)
		}
	}
	return []line{{
		what: "processes of one server of both generations, legacy client", value: float64(running(t, program)), bar: 1,
		format: "%.0f",
	}}
}

// running counts the processes whose command is the program.
func running(t *testing.T, program string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, _ := os.ReadFile(file)
		if name, _, _ := bytes.Cut(text, []byte{0}); string(name) == program {
			n++
		}
	}
	return n
}

// processorTime returns how many milliseconds the threads of a process have run.
func processorTime(t *testing.T, pid int) (ms float64) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		ns, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseFloat(ns, 64)
		ms += n / 1e6
	}
	return ms
}

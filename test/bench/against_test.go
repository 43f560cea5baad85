//go:build bench

package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	against = flag.String("against", "",
		"another gateway: the `command` that starts it, for a shell, or the URL where it runs")
	againstURL    = flag.String("against-url", "", "the `URL` where that command listens; without it, it is a server on stdio")
	againstTool   = flag.String("against-tool", "%s", "what the other gateway calls a tool, by the server's `name` for it")
	againstModern = flag.Bool("against-modern", false, "call with clients of the generation without sessions")
)

// TestAgainst prints what calls cost through another gateway, beside Drawbridge and the controls in the same rounds. A
// short run measures a relay in its place.
func TestAgainst(t *testing.T) {
	command, address := *against, *againstURL
	if strings.HasPrefix(command, "http://") || strings.HasPrefix(command, "https://") {
		command, address = "", command
	}
	if command == "" && address == "" {
		if !testing.Short() {
			t.Skip("no -against")
		}
		command = fmt.Sprintf("%s=relay exec '%s' inline '%s'", roleVariable, self(t), self(t))
	}
	if !strings.Contains(*againstTool, "%s") {
		t.Fatalf("-against-tool %q does not say where the name of the tool is", *againstTool)
	}
	var table []line
	for _, part := range []struct {
		what    string
		make    func(prefix string) request
		clients int
		run     func(testing.TB, []*contender) readings
	}{
		{"64-byte call", small, 1, func(t testing.TB, all []*contender) readings {
			return latencies(t, rounds(), calls(500), all...)
		}},
		{"256 KiB result", func(prefix string) request { return large(prefix, 256<<10) }, 1,
			func(t testing.TB, all []*contender) readings { return latencies(t, rounds(), calls(50), all...) }},
		{fmt.Sprintf("calls a second, %d callers", callers), small, callers,
			func(t testing.TB, all []*contender) readings {
				return rates(t, rounds(), max(calls(2000), 2*callers), all...)
			}},
	} {
		if address == "" && part.clients > 1 {
			continue
		}
		t.Run(part.what, func(t *testing.T) { // what a part has started ends with it
			o := &other{t: t, command: command, url: address}
			table = append(table, o.measure(part.what, part.make, part.clients, part.run)...)
		})
	}
	clients := "legacy"
	if *againstModern {
		clients = "modern"
	}
	printTable(fmt.Sprintf("%s, %d rounds, %s clients; µs are medians", machine(), rounds(), clients), table)
}

// An other is another gateway: a command on standard input and output, a command that listens, or a URL.
type other struct {
	t            testing.TB
	command, url string
}

// measure compares all ways with direct calls. If the other gateway does not answer the calls it is left out.
func (o *other) measure(what string, make func(string) request, clients int,
	run func(testing.TB, []*contender) readings) (table []line) {
	w := prepare(o.t, clients, !*againstModern, make)
	direct, all := &w.directHTTP, []*contender{&w.directHTTP, &w.reverseHTTP, &w.viaStdio, &w.viaHTTP}
	if o.url == "" {
		direct, all = &w.directStdio, []*contender{&w.directStdio, &w.relayBytes, &w.relayInline, &w.relayHand,
			&w.stdioStdio}
	}
	subject := contender{name: "the other gateway"}
	if err := o.open(&subject, make, clients); err != nil {
		o.t.Logf("%s: the other gateway is left out: %v", what, err)
		return nil
	}
	all = append(all, &subject)
	r := run(o.t, all)
	table = r.each(what, direct, all...)
	for _, c := range all {
		if c != &w.viaStdio && c != &w.viaHTTP && c != &w.stdioStdio && (c != &subject || c.p == nil) {
			continue
		}
		own, _ := family(c.p.cmd.Process.Pid)
		m := memoryOf(own)
		table = append(table, line{what: what + ", " + c.name + ": resident memory of its own processes",
			subject: m.String(), value: m.rss, format: "%.0f MB"}.info())
	}
	return table
}

// open starts the other gateway, connects clients, and makes a call.
func (o *other) open(c *contender, make func(string) request, clients int) error {
	if o.command != "" {
		c.p = start(o.t, o.cmd())
	}
	c.request = make("")
	c.request = c.request.named(strings.ReplaceAll(*againstTool, "%s", c.request.name))
	if !*againstModern {
		c.request = c.request.legacy()
	}
	for range clients {
		one, err := o.connect(c.p)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, one)
	}
	var err error
	until(time.Minute, func() bool {
		_, err = c.clients[0].call(c.request)
		return err == nil
	})
	return err
}

// cmd is the command, which a shell runs in a directory of its own. {upstream} in it is a program that is the server
// which all others have, {upstream_url} the same over HTTP, and {mcp_json} a file that configures it as "up".
func (o *other) cmd() *exec.Cmd {
	dir := o.t.TempDir()
	program, config := filepath.Join(dir, "upstream"), filepath.Join(dir, "mcp.json")
	script := fmt.Sprintf("#!/bin/sh\n%s=upstream exec '%s' \"$@\"\n", roleVariable, self(o.t))
	rows, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"up": map[string]any{"command": program}}})
	if err == nil {
		err = os.WriteFile(config, rows, 0o600)
	}
	if err == nil {
		err = os.WriteFile(program, []byte(script), 0o700)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	command := strings.NewReplacer("{upstream}", program, "{mcp_json}", config, "{upstream_url}",
		start(o.t, role(o.t, "upstream", "http")).url(o.t)).Replace(o.command)
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = dir
	return cmd
}

// connect opens a client, which may take as long as the other gateway takes to start.
func (o *other) connect(p *benchProcess) (client, error) {
	if o.url == "" {
		c := &stdioClient{in: p.in, out: p.out}
		if *againstModern {
			return c, nil
		}
		return c, c.open(`{}`)
	}
	if !strings.HasPrefix(o.url, "http://") {
		return nil, fmt.Errorf("%q is not an http URL", o.url)
	}
	var c *httpClient
	var err error
	until(time.Minute, func() bool {
		if c, err = dial(o.url); err != nil {
			return false
		}
		c.redials = true
		if !*againstModern {
			if err = c.open(); err != nil {
				c.Close()
			}
		}
		return err == nil
	})
	if err == nil {
		o.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// named is the same call of a tool with another name.
func (r request) named(name string) request {
	const form = `"name":%q,"arguments"`
	r.body = []byte(strings.Replace(string(r.body), fmt.Sprintf(form, r.name), fmt.Sprintf(form, name), 1))
	r.name = name
	return r
}

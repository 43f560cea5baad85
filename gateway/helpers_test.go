//go:build !nomcp

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// serveConfig opens a gateway on a configuration, runs it until the test ends, and returns the URL of its HTTP door.
func serveConfig(t testing.TB, mcpJSON string) string {
	t.Helper()
	return runGateway(t, mcpJSON, "").url
}

// A running gateway has both its doors open.
type running struct {
	*gateway.Gateway
	url string
	// stop closes the doors and the gateway, and waits for all of it. It may be called again.
	stop func()
}

// runGateway opens a gateway on a configuration and settings, and runs it until the test ends or it is stopped.
func runGateway(t testing.TB, mcpJSON, settings string) *running {
	t.Helper()
	return runIn(t, t.TempDir(), mcpJSON, settings)
}

// runIn is runGateway with a directory for its files: the store is store.db there, and the settings
// drawbridge/drawbridge.toml.
func runIn(t testing.TB, dir, mcpJSON, settings string) *running {
	t.Helper()
	rows := filepath.Join(dir, "mcp.json")
	for path, text := range map[string]string{rows: mcpJSON, filepath.Join(dir, "drawbridge",
		"drawbridge.toml"): settings} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := gateway.Open(t.Context(), gateway.Config{
		Paths: []string{rows}, Dir: dir, Store: filepath.Join(dir, "store.db"), Version: "test",
		LookupEnv: func(name string) (string, bool) {
			if name == gateway.KeychainVariable {
				return "off", true // the machine's own is not ours to try
			}
			return dir, name == "XDG_CONFIG_HOME"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		if err := g.Run(context.Background()); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	door := httptest.NewServer(g.Server().Handler())
	stop := sync.OnceFunc(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		work.Wait()
		door.CloseClientConnections()
		door.Close()
	})
	t.Cleanup(stop)
	g.MountNew(t.Context())
	return &running{g, door.URL + "/mcp", stop}
}

// A path says by which door a client comes, and how the server is reached: "HTTP" or "stdio".
type path struct{ door, upstream string }

func (p path) String() string { return p.door + " to " + p.upstream }

var paths = []path{{"HTTP", "stdio"}, {"stdio", "HTTP"}, {"HTTP", "HTTP"}, {"stdio", "stdio"}}

// A rig is a gateway with a talker behind it, mounted as "up".
type rig struct {
	*running
	t      testing.TB
	record string
	// talker and web are the server where it is reached over HTTP.
	talker *mcptest.Talker
	web    *httptest.Server
	// killed are the lives that restart has ended.
	killed map[string]bool
}

// A plan describes what a rig is made of, beside a talker.
type plan struct {
	server   drawbridge.ProtocolEra
	upstream string
	// row has more members of the talker's row, others names a server of mcptest that is mounted too, settings is a
	// drawbridge.toml. All may be empty.
	row, others, settings string
}

func newRig(t testing.TB, p plan) *rig {
	t.Helper()
	r := &rig{t: t, killed: map[string]bool{}, record: filepath.Join(t.TempDir(), "record")}
	var row string
	if p.upstream == "stdio" {
		row = string(mcptest.ServerRow(t, "talker", p.server.String(), r.record))
	} else {
		var err error
		if r.talker, err = mcptest.HTTPTalker(p.server == drawbridge.Modern, r.record); err != nil {
			t.Fatal(err)
		}
		r.web = httptest.NewServer(r.talker)
		t.Cleanup(func() {
			r.web.CloseClientConnections()
			r.talker.Close()
			r.web.Close()
		})
		row = fmt.Sprintf(`{"type":"http","url":%q}`, r.web.URL)
	}
	if p.row != "" {
		row = strings.TrimSuffix(row, "}") + "," + p.row + "}"
	}
	if p.others != "" {
		row += `,"other":` + string(mcptest.ServerRow(t, p.others))
	}
	r.running = runGateway(t, `{"servers":{"up":`+row+`}}`, p.settings)
	return r
}

// client makes a client of an era at a door of the gateway, declaring caps.
func (r *rig) client(t testing.TB, era drawbridge.ProtocolEra, door, caps string) *client {
	t.Helper()
	return r.clientOf(t, era, mcp.Version20251125, door, caps)
}

func (r *rig) clientOf(t testing.TB, era drawbridge.ProtocolEra, protocol, door, caps string) *client {
	t.Helper()
	return newClient(t, era, protocol, caps, func(hear func(mcp.Message)) line {
		if door == "HTTP" {
			return dialHTTP(r.url, era, hear)
		}
		return dialStdio(t, r.Server(), hear)
	})
}

// records returns what the talker has written down.
func (r *rig) records() []mcptest.TalkerEvent {
	r.t.Helper()
	all, err := mcptest.ReadTalkerEvents(r.record)
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// awaitRecord waits until the talker has written down what is asked for, behind the first so many records.
func (r *rig) awaitRecord(t testing.TB, from int, what string, is func(mcptest.TalkerEvent) bool) mcptest.TalkerEvent {
	t.Helper()
	var found mcptest.TalkerEvent
	eventually(t, "the server never had: "+what, func() bool {
		for _, one := range r.records()[from:] {
			if is(one) {
				found = one
				return true
			}
		}
		return false
	})
	return found
}

// awaitEvent waits for what happens to a tool.
func (r *rig) awaitEvent(t testing.TB, from int, event, name string) {
	t.Helper()
	r.awaitRecord(t, from, event+" "+name, func(one mcptest.TalkerEvent) bool {
		return one.Event == event &&
			one.Name == name
	})
}

// open returns the turns that the living talkers have begun and not ended.
func (r *rig) open() map[string]bool {
	open := map[string]bool{}
	for _, one := range r.records() {
		id := fmt.Sprintf("%s, call %d of life %s", one.Name, one.Call, one.Life)
		switch {
		case r.killed[one.Life]:
		case one.Event == "begin":
			open[id] = true
		case one.Event == "answered", one.Event == "asked", one.Event == "cancelled":
			delete(open, id)
		}
	}
	return open
}

// pids returns the processes of all talkers that were started so far.
func (r *rig) pids() []int {
	var pids []int
	for _, one := range r.records() {
		if pid, err := strconv.Atoi(one.Life); err == nil && one.Event == "start" && r.talker == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// restart kills the server, every process of it, or has it forget all it knows.
func (r *rig) restart() {
	r.t.Helper()
	if r.talker != nil {
		r.talker.Restart()
		r.web.CloseClientConnections()
		return
	}
	for _, pid := range r.pids() {
		life := strconv.Itoa(pid)
		if r.killed[life] {
			continue
		}
		r.killed[life] = true
		p, err := os.FindProcess(pid)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := p.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			r.t.Fatal(err)
		}
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, otherwise string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatal(otherwise)
		}
		<-time.After(2 * time.Millisecond)
	}
}

//go:build unix

package hub

import (
	"encoding/json"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/google/go-cmp/cmp"
)

// TestRefusedHellos sends hellos of other versions of the control protocol to a hub, as docs/hub.md describes.
func TestRefusedHellos(t *testing.T) {
	for _, test := range []struct {
		name, hello string
		want        welcome
	}{
		{"older peer", `{"drawbridge":1,"want":"state"}`, welcome{Revision: 2, Code: drawbridge.InvalidInput,
			Error: "the hub speaks control protocol 2 and this program 1: end the hub first (drawbridge ps shows it)"}},
		{"newer peer", `{"drawbridge":3,"want":"subscribe","topics":[]}`, welcome{Revision: 2,
			Code: drawbridge.InvalidInput,
			Error: "the hub speaks control protocol 2 and this program 3: end the hub first " +
				"(drawbridge ps shows it)"}},
		{"no version", `{"want":"state"}`, welcome{Revision: 2, Code: drawbridge.InvalidInput,
			Error: "the hub speaks control protocol 2 and this program 0: end the hub first (drawbridge ps shows it)"}},
		{"unknown verb", `{"drawbridge":2,"want":"teleport"}`, welcome{Revision: 2, Code: drawbridge.InvalidInput,
			Error: `the hub does not know the request "teleport": use the version of drawbridge that runs the hub`}},
		{"not JSON", `GET / HTTP/1.1`, welcome{Revision: 2, Code: drawbridge.InvalidInput,
			Error: "read the request to the hub: not a hello of the control protocol"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := exchangeHello(t, test.hello+"\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("welcome (-want +got):\n" + diff)
			}
		})
	}
}

// exchangeHello sends a line to a hub and returns its answer.
func exchangeHello(t *testing.T, line string) welcome {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hub.sock")
	listener, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := listener.AcceptUnix()
		if err == nil {
			(&hub{log: slog.New(slog.DiscardHandler)}).handleConn(t.Context(), conn)
			err = conn.Close()
		}
		served <- err
	}()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(line)); err != nil {
		t.Fatal(err)
	}
	var w welcome
	if err := json.NewDecoder(conn).Decode(&w); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	return w
}

// TestReadWelcome shows which answers a client of this version accepts.
func TestReadWelcome(t *testing.T) {
	for _, test := range []struct{ name, welcome, refusal string }{
		{"same version", `{"drawbridge":2,"pid":7}`, ""},
		{"a hub that does not send its version", `{"pid":7}`, ""},
		{"members of a later release", `{"drawbridge":2,"pid":7,"features":["events"]}`, ""},
		{"refusal", `{"drawbridge":3,"error":"the hub speaks control protocol 3","code":"invalid_input"}`,
			"the hub speaks control protocol 3"},
		{"not JSON", `hello`, "read the answer of the hub: invalid JSON (end the hub (drawbridge ps shows it))"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := readWelcome([]byte(test.welcome)); err != nil {
				got = err.Error()
			}
			if got != test.refusal {
				t.Errorf("got %q, want %q", got, test.refusal)
			}
		})
	}
}

// TestHelloOfTheLastRelease: a hello without new members is the line of the release before, which an old hub reads.
func TestHelloOfTheLastRelease(t *testing.T) {
	o := Options{Host: "test", Config: gateway.Config{Dir: "/work", Paths: []string{"a.json"}, Environ: []string{"A=b"}}}
	said := o.newHello(wantAttach)
	said.Revision, said.PID, said.PassesFiles, said.HubNumber = protocolRevision, 7, true, 1
	text, err := json.Marshal(said)
	const want = `{"drawbridge":2,"want":"attach","pid":7,"host":"test","paths":["a.json"],"dir":"/work",` +
		`"environ":["A=b"],"lends":true,"turn":1}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
}

//go:build peers

package interop

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestApps has the Inspector find the apps of MCP Apps samples that are mounted side by side, one of them twice, and
// read what they are made of, in both generations.
func TestApps(t *testing.T) {
	t.Parallel()
	sample := func(name, pkg string) row {
		return row{Name: name, Command: node, Args: []string{module(t, "@modelcontextprotocol/server-"+pkg+
			"/dist/index.js"), "--stdio"}}
	}
	url := serveHTTP(t, []row{sample("clock", "basic-vanillajs"), sample("budget", "budget-allocator"),
		sample("again", "basic-vanillajs")})
	want := map[string]bool{"clock__get-time": true, "budget__get-budget-data": true, "again__get-time": true}
	listed(t, &httpDoor{url: url, era: modern}, "clock__get-time", "budget__get-budget-data", "again__get-time")
	for _, e := range []string{"legacy", "modern"} {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			options := []string{"--server-url", url, "--transport", "http", "--protocol-era", e}
			got, uris := map[string]bool{}, map[string]bool{}
			for line := range bytes.Lines(inspector(t, options, nil, "--method", "tools/list", "--app-info")) {
				var app struct {
					HasApp                                  bool
					ToolName, ResourceURI, ResourceMimeType string
				}
				decode(t, json.RawMessage(line), &app)
				if !app.HasApp {
					continue
				}
				got[app.ToolName], uris[app.ResourceURI] = true, true
				if app.ResourceMimeType != appType || !strings.HasPrefix(app.ResourceURI, "ui://") {
					t.Errorf("%s is made of %s, which is %s", app.ToolName, app.ResourceURI, app.ResourceMimeType)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(uris) != len(want) {
				t.Errorf("the apps are made of %v:\n%s", uris, diff)
			}
			for uri := range uris {
				readApp(t, options, uri)
			}
		})
	}
}

const appType = "text/html;profile=mcp-app"

func readApp(t *testing.T, options []string, uri string) {
	t.Helper()
	var read struct {
		Contents []struct{ URI, MimeType, Text string }
	}
	decode(t, inspect(t, options, nil, "--method", "resources/read", "--uri", uri), &read)
	if len(read.Contents) != 1 || read.Contents[0].URI != uri || read.Contents[0].MimeType != appType ||
		!strings.Contains(read.Contents[0].Text, "<html") {
		t.Errorf("%s: got %.300v", uri, read.Contents)
	}
}

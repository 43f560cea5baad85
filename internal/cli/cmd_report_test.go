//go:build unix

package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/cli"
	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// TestReportHasNoSecret plants a secret in each place that Drawbridge reads or that a server writes to, and looks for
// all of them in the report of a running hub.
func TestReportHasNoSecret(t *testing.T) {
	d := newDesk(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d.env["OUR_TOKEN"] = "planted-ours"
	d.write("filed", "planted-filed")
	d.write(".config/drawbridge/mcp.json", fmt.Sprintf(`{"servers": {
		"every": {"command": %[1]q, "args": ["--key", "planted-arg"],
			"env": {%[2]q: "everything", "API_KEY": "planted-env", "A": "${file:%[3]s}", "B": "!echo planted-command",
				"C": "${OUR_TOKEN}", "D": "${keychain:canary}"}},
		"fails": {"command": "sh", "args": ["-c", "echo planted-stderr >&2; echo planted-stdout; exit 3", "planted-arg"],
			"env": {"API_KEY": "planted-env"}},
		"url": {"url": "http://planted-user:planted-password@127.0.0.1:1/planted-path?key=planted-query",
			"headers": {"X-Key": "planted-header", "Authorization": "Bearer planted-bearer"}},
		"bad": {"command": "planted-program", "planted_member": "planted-value"}}}`, self, mcptest.ServerVariable,
		filepath.Join(d.home, "filed")))
	d.write(".config/drawbridge/drawbridge.toml", `[mcp.tool_discovery.embedding]
base_url = "http://127.0.0.1:1/planted-model"
api_key = "planted-model-key"
model = "planted-model-name"
`)
	if code := cli.Main(t.Context(), []string{"secret", "set", "canary"},
		d.process(strings.NewReader("planted-vault"), io.Discard, io.Discard)); code != 0 {
		t.Fatal("secret set ended with", code)
	}
	client := d.talk()
	client.ask(2, "tools/call", `{"name":"every__echo","arguments":{"text":"planted-argument"}}`)
	for _, server := range []string{"fails", "url", "bad"} {
		client.ask(3, "tools/call", fmt.Sprintf(`{"name":"%s__x","arguments":{}}`, server))
		d.run(1, "mcp", "test", server)
	}
	path := filepath.Join(d.home, "r.tar.gz")
	out, _ := d.run(0, "report", "--profile", "cpu=10ms", path)
	for _, want := range []string{"report.json: versions", "goroutines.txt: the stacks", "cpu.pprof", "Nothing was sent."} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
	parts := unpackReport(t, path)
	all := strings.Join([]string{out, parts["report.json"], parts["goroutines.txt"], parts["cpu.pprof"],
		parts["manifest.json"]}, "\n")
	if strings.Contains(all, "planted") {
		for line := range strings.Lines(all) {
			if strings.Contains(line, "planted") {
				t.Errorf("a secret is in the report: %s", line)
			}
		}
	}
	if strings.Contains(all, d.home) {
		t.Error("the report names the home directory")
	}
	for _, want := range []string{`"state": "runs"`, `"phase": "faulted"`, `"about": "server 2"`, `"go": "go1`, `"audit_records": `,
		`its text is left out`} {
		if !strings.Contains(parts["report.json"], want) {
			t.Errorf("the report has no %q:\n%s", want, parts["report.json"])
		}
	}
	if !strings.Contains(parts["goroutines.txt"], "goroutine ") {
		t.Error("the report has no stacks")
	}
}

func unpackReport(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		parts[h.Name] = string(text)
	}
}

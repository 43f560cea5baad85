package launch_test

import (
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/launch"
	"github.com/google/go-cmp/cmp"
)

func TestSplitCommandLine(t *testing.T) {
	for command, want := range map[string][]string{
		"npx":                         nil,
		"npx -y pkg":                  {"npx", "-y", "pkg"},
		"/opt/My Programs/server":     nil,
		`C:\Program Files\node.exe x`: nil,
		`sh -c "a b"`:                 nil,
		"npx pkg && rm x":             nil,
		"":                            nil,
	} {
		if diff := cmp.Diff(want, launch.SplitCommandLine(command)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", command, diff)
		}
	}
}

func TestDownload(t *testing.T) {
	for _, test := range []struct {
		command string
		args    []string
		want    launch.Download
	}{
		{"npx", []string{"-y", "@scope/pkg@1.2.3", "/dir"}, launch.Download{Program: "npm", Package: "@scope/pkg@1.2.3"}},
		{`C:\node\npx.cmd`, []string{"pkg"}, launch.Download{Program: "npm", Package: "pkg"}},
		{"uvx", []string{"--from", "pkg", "tool"}, launch.Download{Program: "uv", Package: "pkg"}},
		{"node", []string{"server.js"}, launch.Download{}},
	} {
		got, ok := launch.Spec{Command: test.command, Args: test.args}.Download()
		if got != test.want || ok != (test.want.Program != "") {
			t.Errorf("%s %q: got %v, %v", test.command, test.args, got, ok)
		}
	}
}

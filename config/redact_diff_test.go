package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
)

func TestDiffShowsStructureOnly(t *testing.T) {
	for name, tt := range map[string]struct{ path, before, after, want string }{
		"JSON": {"a.json",
			"{\n  \"$schema\": \"https://x/y\", // note\n  \"a\": {\"env\": {\"T\": \"one\\\"two\", 'x': 'y'}, \"n\": 20, \"pin\": 1234567, \"on\": true}\n}\n", "{}\n",
			"--- a.json\n+++ a.json\n@@ -1 +1 @@\n-{\n-  \"$schema\": \"…\", // …\n-  \"a\": {\"env\": {\"T\": \"…\", 'x': …}, \"n\": 20, \"pin\": …, \"on\": true}\n-}\n+{}\n"},
		"TOML": {"a.toml",
			"", "[a.\"/b\"] # why\n[a]\nt = 'x' # c\nd = 1979-05-27\nk = '''\nMIIBVQ==\nMIIB=\nlone line\n'''\ncommand = \"/opt/d\"\n",
			"--- a.toml\n+++ a.toml\n@@ -1 +1 @@\n+[…\"…\"] # …\n+[a]\n+t = … # …\n+d = …\n+k = ……\n+…==\n+…=\n+… …\n+……\n+command = \"/opt/d\"\n"},
		"YAML": {"a.yaml",
			"", "a:\n  t: one two # c\n  n: 300\n  phone: 12-34-56\n  card: 1234 5678\n  url: http://u:p@h/x\n  key: |\n    -----BEGIN x\n    - \"y: z\"\n  on: true\n",
			"--- a.yaml\n+++ a.yaml\n@@ -1 +1 @@\n+a:\n+  t: … … # …\n+  n: 300\n+  phone: …\n+  card: … …\n+  url: …:…:…\n+  key: …\n+    -----… …\n+    - \"…\"\n+  on: true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := redactedDiff(tt.path, []byte(tt.before), []byte(tt.after), []string{"/opt/d"})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzDiff looks for a secret in what a person is shown.
func FuzzDiff(f *testing.F) {
	for _, secret := range []string{"", "\"", "\\\"", "' # ", "\n: x", " = y", "//", "é\x7f", "-1 [a]"} {
		f.Add(secret, secret)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		value, err := json.Marshal(before + "s3cret" + after)
		if err != nil {
			t.Fatal(err)
		}
		for path, format := range map[string]configfile.Format{"a.json": configfile.JSON, "a.toml": configfile.TOML,
			"a.yaml": configfile.YAML} {
			data, err := configfile.Set(format, nil, []string{"a", "env", "TOKEN"}, value)
			if err != nil {
				continue
			}
			if got := redactedDiff(path, nil, data, []string{"serve"}); strings.Contains(got, "s3cret") {
				t.Errorf("%s shows the secret of\n%s", got, data)
			}
		}
	})
}

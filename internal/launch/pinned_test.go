package launch

import (
	"strings"
	"testing"
)

// TestTR5VersionsThatAreNotFixed is row TR-5: whoever approves a row, or looks at their own, is told that each start
// may run another package, and what to write.
func TestTR5VersionsThatAreNotFixed(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for line, advice := range map[string]string{
		"npx -y pkg":                                   "NAME@1.2.3",
		"npx -y pkg@latest":                            "NAME@1.2.3",
		"npx -y pkg@1":                                 "NAME@1.2.3",
		"npx -y pkg@1.2":                               "NAME@1.2.3",
		"npx -y pkg@^1.2.3":                            "NAME@1.2.3",
		"npx -y pkg@1.x.3":                             "NAME@1.2.3",
		"npx @scope/pkg":                               "NAME@1.2.3",
		"npx --package=pkg tool":                       "NAME@1.2.3",
		"npx -p pkg@next tool@1.2.3":                   "NAME@1.2.3",
		"npm exec -- pkg":                              "NAME@1.2.3",
		"npx.cmd -y pkg":                               "NAME@1.2.3",
		"npx -y pkg@1.2.3":                             "",
		"npx @scope/pkg@1.2.3-beta.1":                  "",
		"npx -y pkg@v1.2.3 --port 80":                  "",
		"npx -y git+https://h/x.git":                   "", // another finding tells
		"npx":                                          "",
		"bun x pkg":                                    "NAME@1.2.3",
		"bun x pkg@1.2.3":                              "",
		"bun run x":                                    "",
		"deno run -A npm:pkg":                          "NAME@1.2.3",
		"deno run jsr:@s/pkg@1.2.3":                    "",
		"deno run npm:@s/pkg@1.2.3/bin":                "",
		"deno run a.ts npm:pkg":                        "",
		"uvx tool":                                     "NAME==1.2.3",
		"uvx tool@latest":                              "NAME==1.2.3",
		"uvx tool>=1.2":                                "NAME==1.2.3",
		"uvx --from tool-server>=1 tool":               "NAME==1.2.3",
		"uv tool run server":                           "NAME==1.2.3",
		"pipx run tool":                                "NAME==1.2.3",
		"uvx tool==1.2":                                "",
		"uvx tool@1.2.3":                               "",
		"uvx --from tool-server==1.2.3 x":              "",
		"docker run -i --rm img":                       "NAME@sha256:…",
		"docker run -i --rm -e K img:1.2.3":            "NAME@sha256:…",
		"podman run img:latest cmd":                    "NAME@sha256:…",
		"docker run -i --rm -e K img@sha256:" + hash:   "",
		"docker run -eK=v --name n img@sha256:" + hash: "",
		"docker run img@sha256:" + hash[1:]:            "NAME@sha256:…",
		"docker ps":                                    "",
		"node server.js":                               "",
	} {
		words := strings.Fields(line)
		got := Spec{Command: words[0], Args: words[1:]}.Unpinned()
		switch {
		case advice == "" && got == nil:
		case len(got) != 1 || advice == "" || got[0].Code != UnpinnedPackage || !strings.HasSuffix(got[0].Text,
			"(write "+advice+")"):
			t.Errorf("%s: %v, want %q", line, got, advice)
		case strings.Contains(got[0].Text, "pkg") || strings.Contains(got[0].Text, "tool") ||
			strings.Contains(got[0].Text, "img"):
			t.Errorf("%s: a value is in %v", line, got)
		}
	}
}

func FuzzUnpinned(f *testing.F) {
	for _, s := range []string{"npx -y pkg@1.2.3", "docker run -e", "uvx --from", "npm exec --", "uvx =@=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		for _, found := range (Spec{Command: words[0], Args: words[1:]}).Unpinned() {
			if found.Code != UnpinnedPackage || len(found.Text) > 200 {
				t.Errorf("%q: %+v", line, found)
			}
		}
	})
}

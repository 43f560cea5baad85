package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReferenceIsCurrent holds docs/configuration.md to the tables that files are read by. With -update it writes it.
func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "configuration.md")
	got := reference()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantDiff(t, path+" (write it anew with go test ./config -run Reference -update)", string(want), got)
}

const referenceTop = `# Configuration

This page is made from the tables that Drawbridge reads files by: ` + "`go test ./config -run Reference -update`" + `.

## Where servers are written

The first valid definition of a name counts; later ones are shown as shadowed. An invalid one shadows nothing.

| file | whose |
|---|---|
| ` + "`.drawbridge/mcp.json`, `.drawbridge/drawbridge.toml`" + ` in the working directory | the project's: its servers wait for approval |
| ` + "`~/.config/drawbridge/mcp.json`, `drawbridge.toml`" + ` (` + "`$XDG_CONFIG_HOME`" + ` moves them) | yours |
| ` + "`~/.drawbridge/agent/mcp.json`, `mcp-servers.json`" + ` | yours, from older days |
| what ` + "`--mcp`" + ` names: files, or directories to search | yours: it replaces all of the above |

JSON may have comments and trailing commas. Servers stand under ` + "`mcpServers` or `servers`" + `, as an object by name or as an array;
in TOML under ` + "`[[mcp.servers]]`" + `. ` + "`\"disabledServers\": [\"name\"]`" + ` in a JSON file of your own turns servers off, whatever file they are in.

A server that a project brings does not start before a person approves it, and asks again when its definition changes.
`

const referenceValues = `
## Values

In texts, ` + "`${NAME}`" + ` is the variable NAME and ` + "`${NAME:-text}`" + ` is text where it is not set; a variable that is not set stays as it is written, and is
reported. ` + "`$${`" + ` is ` + "`${`" + ` itself.

A value of ` + "`env` or `headers`" + ` may also be a command after ` + "`!`" + `, whose output is the value, or as a whole the name of a variable that is set.
` + "`${:-text}`" + ` keeps a text from being taken for either. What a variable holds is never taken for a command or a name.
`

const referenceOthers = `
## Other programs' files

What these programs keep in a project takes part as the project's servers do, after Drawbridge's own files and in this order. What they
keep in files of your own is only there to be imported.

| program | name | in a project | your own |
|---|---|---|---|
`

// reference writes the page.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceTop)
	b.WriteString("\n## A server\n")
	table(&b, "server", "member")
	b.WriteString(referenceValues)
	b.WriteString("\n## Settings\n\nThey are read from your own `drawbridge.toml` only. A time is `\"30s\"`, or a number of milliseconds.\n")
	for _, section := range []string{"mcp", "store", "serve"} {
		fmt.Fprintf(&b, "\n### [%s]\n", section)
		table(&b, section, "setting")
	}
	b.WriteString(referenceOthers)
	for _, p := range Providers()[1:] {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", p.Title, p.Name, code(p.Project), code(p.User))
	}
	return b.String()
}

func table(b *strings.Builder, section, what string) {
	fmt.Fprintf(b, "\n| %s | value | default | what it does |\n|---|---|---|---|\n", what)
	for _, f := range Fields() {
		if f.Section == section {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, f.Default, f.Doc)
		}
	}
}

// code joins paths as code.
func code(paths []string) string {
	quoted := make([]string, 0, len(paths))
	for _, p := range paths {
		quoted = append(quoted, "`"+p+"`")
	}
	return strings.Join(quoted, ", ")
}

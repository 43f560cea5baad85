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

A server that a project brings does not start before a person approves it, and asks again when its definition
changes, or the file that its command meant; see [confinement](confinement.md).
`

const referenceAuth = `
### Signing in

Drawbridge finds out by itself how to sign in at a server. What ` + "`auth`" + ` says counts before what is found out, and before what ` + "`oauth`" + `, an
older name for the same, says. Both names of a member are read: ` + "`token_url` and `tokenUrl`" + `.
`

const referenceValues = `
## Values

In texts, ` + "`${NAME}`" + ` is the variable NAME and ` + "`${NAME:-text}`" + ` is text where it is not set; a variable that is not set stays as it is written, and is
reported. ` + "`${env:NAME}` is `${NAME}`, and `$${` is `${`" + ` itself.

A value of ` + "`env` or `headers`" + ` may also be as a whole the name of a variable that is set, or a command after ` + "`!`" + `, whose output is the value.
` + "`${:-text}`" + ` keeps a text from being taken for either. What a variable holds is never taken for a command, a name or a reference.

### References

A secret need not stand in the file. A value of ` + "`env` or `headers`, and `client_id` and `client_secret` in `auth`" + `, may refer to it, as a whole or in
the midst of a text:

| written | is |
|---|---|
| ` + "`${file:PATH}`" + ` | what a file holds, without the line end; ` + "`~/`" + ` is your home, and a relative path starts at the file that has the row |
| ` + "`${keychain:NAME}`" + ` | what you keep under that name in the keychain |
| ` + "`${command:CMD}`, or `!CMD`" + ` as a whole | what a command of the shell prints, without the blanks around it |

A reference ends at the first ` + "`}`" + `: a command with one in it is written after ` + "`!`" + `. References are looked up when the server is started or dialled,
not before, and what is found is put in as it is. Where nothing is found the value is left out, and ` + "`drawbridge mcp list`" + ` says so;
` + "`drawbridge doctor`" + ` looks at all of them before any server starts, and runs no command. Elsewhere, in ` + "`args`, `command`, `cwd` or `url`" + `, a
reference refuses the row: every process of the machine can read a program's arguments.
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
	b.WriteString(referenceAuth)
	table(&b, "auth", "member")
	b.WriteString(referenceValues)
	b.WriteString("\n## Settings\n\nThey are read from your own `drawbridge.toml` only. A time is `\"30s\"`, or a number of milliseconds;\n" +
		"where the table says seconds, a number is of seconds.\n")
	for _, section := range []string{"mcp", "mcp.tool_discovery", "mcp.tool_discovery.embedding",
		"mcp.tool_discovery.rerank", "mcp.shield", "tools", "store", "serve", "audit"} {
		fmt.Fprintf(&b, "\n### [%s]\n", section)
		table(&b, section, "setting")
	}
	b.WriteString(referenceOthers)
	for _, p := range Providers()[1:] {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", p.Title, p.Name, code(p.ProjectFiles), code(p.UserFiles))
	}
	return b.String()
}

func table(b *strings.Builder, section, what string) {
	fmt.Fprintf(b, "\n| %s | value | default | what it does |\n|---|---|---|---|\n", what)
	for _, f := range DocumentedFields() {
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

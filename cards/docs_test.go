package cards

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// TestToolsPage holds docs/tools.md to the catalogue. With -update it writes the page.
func TestToolsPage(t *testing.T) {
	path := filepath.Join("..", "docs", "tools.md")
	page := toolsPage(t)
	if *update {
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, page) {
		t.Errorf("%s is not current (%v); run go test ./cards -update", path, err)
	}
}

// toolsPage returns the page about Drawbridge's own tools.
func toolsPage(t *testing.T) []byte {
	t.Helper()
	var page bytes.Buffer
	text, err := os.ReadFile(filepath.Join("testdata", "tools_page.md"))
	if err != nil {
		t.Fatal(err)
	}
	page.Write(text)
	page.WriteString("\n| tool | what it does | profiles |\n|---|---|---|\n")
	catalogue := NewCatalogue()
	for _, row := range catalogue.Cards() {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s | %s |\n", row.ID, row.ID, strings.TrimSuffix(row.Summary, "."), profileNames(catalogue, row))
	}
	for _, row := range catalogue.Cards() {
		card, err := row.Build(deck.Context{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		spec := card.Spec()
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", row.ID, rawjson.GetString(spec.Definition, "description"))
		if len(spec.Scopes) > 0 {
			fmt.Fprintf(&page, "\nScopes: `%v`.\n", strings.Trim(fmt.Sprint(spec.Scopes), "[]"))
		}
		writeArguments(&page, spec.Definition)
	}
	return page.Bytes()
}

// profileNames returns the profiles that select a card.
func profileNames(c *deck.Catalogue, row deck.Card) string {
	var names []string
	for _, p := range []deck.Profile{deck.Authoring, deck.Survey, deck.All} {
		selected, err := c.CardsForDeckProfile(p)
		if err == nil && slices.ContainsFunc(selected, func(other deck.Card) bool { return other.ID == row.ID }) {
			names = append(names, string(p))
		}
	}
	return strings.Join(names, ", ")
}

// writeArguments writes a table of a tool's arguments.
func writeArguments(page *bytes.Buffer, definition []byte) {
	schema := rawjson.Get(definition, "inputSchema")
	var required []string
	for raw := range rawjson.Elements(rawjson.Get(schema, "required")) {
		name, _ := rawjson.DecodeString(raw)
		required = append(required, name)
	}
	header := "\n| argument | type | meaning |\n|---|---|---|\n"
	for m := range rawjson.Members(rawjson.Get(schema, "properties")) {
		name, _ := rawjson.DecodeString(m.Name)
		kind := rawjson.GetString(m.Value, "type")
		if !slices.Contains(required, name) {
			kind += ", optional"
		}
		fmt.Fprintf(page, "%s| `%s` | %s | %s |\n", header, name, kind,
			strings.ReplaceAll(rawjson.GetString(m.Value, "description"), "|", `\|`))
		header = ""
	}
}

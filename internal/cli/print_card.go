package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/cli/term"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// printCard prints a card: its description, the notes of the shield, and its arguments.
func printCard(out io.Writer, spec drawbridge.Spec, notes []string) error {
	owner := "shipped with drawbridge"
	if spec.Server != "" {
		owner = fmt.Sprintf("tool %q of server %q", spec.Tool, spec.Server)
	}
	safetext.Fprintf(out, "%s: %s\n", spec.Name, owner)
	if text := rawjson.GetString(spec.Definition, "description"); text != "" {
		safetext.Fprintf(out, "\n%s\n", safetext.Shown(safetext.Text(text)))
	}
	for _, note := range notes {
		safetext.Fprintf(out, "\n%s\n", note)
	}
	for _, part := range []string{"inputSchema", "outputSchema", "annotations"} {
		raw := rawjson.Get(spec.Definition, part)
		if raw == nil {
			continue
		}
		var b bytes.Buffer
		if json.Indent(&b, raw, "", "  ") == nil {
			safetext.Fprintf(out, "\n%s: %s\n", part, safetext.Shown(safetext.Text(b.String())))
		}
	}
	return nil
}

// printToolResult prints a tool's result for a person: its texts, and a word for each other block. Control characters
// are escaped at a terminal.
func printToolResult(out io.Writer, result json.RawMessage) {
	shown := false
	var w strings.Builder
	defer func() {
		text := w.String()
		if term.IsTerminal(out) {
			text = safetext.Text(text)
		}
		io.WriteString(out, text)
	}()
	for block := range rawjson.Elements(rawjson.Get(result, "content")) {
		shown = true
		switch kind := rawjson.GetString(block, "type"); kind {
		case "text":
			fmt.Fprintln(&w, rawjson.GetString(block, "text"))
		case "image", "audio":
			fmt.Fprintf(&w, "[%s: %s, %d bytes of Base64]\n", kind, rawjson.GetString(block, "mimeType"),
				len(rawjson.GetString(block, "data")))
		case "resource":
			fmt.Fprintf(&w, "[resource: %s]\n%s\n", rawjson.GetString(block, "resource", "uri"),
				rawjson.GetString(block, "resource", "text"))
		case "resource_link":
			fmt.Fprintf(&w, "[resource: %s (%s)]\n", rawjson.GetString(block, "uri"), rawjson.GetString(block, "name"))
		default:
			fmt.Fprintf(&w, "[%s]\n", kind)
		}
	}
	if structured := rawjson.Get(result, "structuredContent"); !shown && structured != nil {
		fmt.Fprintf(&w, "%s\n", structured)
	}
	if kind := rawjson.GetString(result, "resultType"); kind != "" && kind != "complete" {
		fmt.Fprintf(&w, "[the tool asks for %s, which a command line cannot answer: call it from a client]\n",
			strings.ReplaceAll(kind, "_", " "))
	}
}

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// printCard prints a tool: its owner, its description, the notes, its schemas, also a learned one, and its annotations.
func printCard(out io.Writer, tool command.Tool) error {
	spec := tool.Spec()
	owner := "shipped with drawbridge"
	if spec.Server != "" {
		owner = fmt.Sprintf("tool %q of server %q", spec.Tool, spec.Server)
	}
	safetext.Fprintf(out, "%s: %s\n", spec.Name, owner)
	if text := rawjson.GetString(spec.Definition, "description"); text != "" {
		safetext.Fprintf(out, "\n%s\n", safetext.Shown(safetext.Text(text)))
	}
	for _, note := range tool.Notes {
		safetext.Fprintf(out, "\n%s\n", note)
	}
	for _, part := range []string{"inputSchema", "outputSchema", "annotations"} {
		raw := rawjson.Get(spec.Definition, part)
		if raw == nil {
			continue
		}
		printSchema(out, part, raw)
	}
	if l := tool.Learned; l != nil {
		results := fmt.Sprintf("%d results", l.Results)
		if l.Results == 1 {
			results = "1 result"
		}
		printSchema(out, fmt.Sprintf("Output (learned from %s, version %d)", results, l.Version), l.Schema)
	}
	return nil
}

func printSchema(out io.Writer, title string, raw json.RawMessage) {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") == nil {
		safetext.Fprintf(out, "\n%s: %s\n", title, safetext.Shown(safetext.Text(b.String())))
	}
}

// toolJSON returns the definition of a tool. A learned output is in its _meta.
func toolJSON(tool command.Tool) (json.RawMessage, error) {
	definition := tool.Spec().Definition
	if tool.Learned == nil {
		return definition, nil
	}
	learned, err := json.Marshal(tool.Learned)
	return rawjson.Apply(definition, rawjson.Put(learned, "_meta", mcp.MetaLearnedOutput)), err
}

// printToolResult prints the result of a tool for a person, as drawbridge.Result.Text returns it. If the tool requests
// input from the client, a note is printed instead. At a terminal, control characters are escaped.
func printToolResult(out io.Writer, result json.RawMessage) {
	text := drawbridge.Result{Raw: result}.Text()
	if kind := rawjson.GetString(result, "resultType"); kind != "" && kind != "complete" {
		text = fmt.Sprintf("[the tool asks for %s, which a command line cannot answer: call it from a client]",
			strings.ReplaceAll(kind, "_", " "))
	}
	if text == "" {
		return
	}
	if IsTerminal(out) {
		text = safetext.Text(text)
	}
	_, _ = io.WriteString(out, text+"\n") // a closed pipe ends the command
}

package configfile

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

// formatValue returns value in the style of the document. indent is the indentation of the line on which the value
// starts. If multi is false, the result is on one line.
func (t *jsonEditor) formatValue(value json.RawMessage, indent string, multi bool) string {
	v, err := hujson.Parse(value)
	if err != nil {
		return string(value) // the check of the result returns an error
	}
	var b strings.Builder
	t.writeValue(&b, v, indent, multi)
	return b.String()
}

func (t *jsonEditor) writeValue(out *strings.Builder, v hujson.Value, indent string, multi bool) {
	b, isBox := (&jsonEditor{}).containerOf(&v)
	if !isBox {
		out.Write(bytes.TrimSpace(v.Value.(hujson.Literal)))
		return
	}
	open, end := "{", "}"
	if b.list {
		open, end = "[", "]"
		multi = multi && hasContainers(b) // a list of strings is written on one line
	}
	between, first, last := ", ", "", ""
	switch {
	case len(b.items) == 0:
	case multi:
		first, last = t.lineBreak+indent+t.indentUnit, t.lineBreak+indent
		between = "," + first
	case t.compact:
		between = ","
	}
	out.WriteString(open + first)
	for i, it := range b.items {
		if i > 0 {
			out.WriteString(between)
		}
		if !b.list {
			out.Write(quoteJSON(it.name))
			out.WriteString(t.nameSeparator())
		}
		t.writeValue(out, *it.value, indent+t.indentUnit, multi)
	}
	out.WriteString(last + end)
}

func hasContainers(b jsonContainer) bool {
	for _, it := range b.items {
		if _, literal := it.value.Value.(hujson.Literal); !literal {
			return true
		}
	}
	return false
}

func (t *jsonEditor) nameSeparator() string {
	if t.compact {
		return ":"
	}
	return ": "
}

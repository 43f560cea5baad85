package doc

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tailscale/hujson"
)

// layout writes a value as its neighbours are written. Indent is that of the line it starts on.
func (t *jsonText) layout(value json.RawMessage, indent string, multi bool) string {
	v, err := hujson.Parse(value)
	if err != nil {
		return string(value) // the check of the result refuses it
	}
	var b strings.Builder
	t.lay(&b, v, indent, multi)
	return b.String()
}

func (t *jsonText) lay(out *strings.Builder, v hujson.Value, indent string, multi bool) {
	b, isBox := (&jsonText{}).box(&v)
	if !isBox {
		out.Write(bytes.TrimSpace(v.Value.(hujson.Literal)))
		return
	}
	open, end := "{", "}"
	if b.list {
		open, end = "[", "]"
		multi = multi && holdsBoxes(b) // texts fit on one line
	}
	between, first, last := ", ", "", ""
	switch {
	case len(b.items) == 0:
	case multi:
		first, last = t.nl+indent+t.unit, t.nl+indent
		between = "," + first
	case t.tight:
		between = ","
	}
	out.WriteString(open + first)
	for i, it := range b.items {
		if i > 0 {
			out.WriteString(between)
		}
		if !b.list {
			out.Write(quote(it.name))
			out.WriteString(t.colon())
		}
		t.lay(out, *it.value, indent+t.unit, multi)
	}
	out.WriteString(last + end)
}

func holdsBoxes(b box) bool {
	for _, it := range b.items {
		if _, literal := it.value.Value.(hujson.Literal); !literal {
			return true
		}
	}
	return false
}

func (t *jsonText) colon() string {
	if t.tight {
		return ":"
	}
	return ": "
}

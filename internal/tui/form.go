package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A form asks for the values that a server wants.
type form struct {
	fields []*field
	at     int
	fault  string
}

// A field is one value of a form.
type field struct {
	name, title, note string
	kind              string // the JSON type
	required          bool
	choices           []choice // the values of an enumeration, as their JSON text
	chosen            map[int]bool
	cursor            int
	yes               bool
	input             editor
	secret            bool // what is typed is not shown
	minLength         *int
	maxLength         *int
	minimum, maximum  *float64
}

// A property is a property of the schema of a form.
type property struct {
	Type, Title, Description string
	Default                  json.RawMessage
	Enum                     []string
	EnumNames                []string
	OneOf                    []enumValue
	Items                    *struct {
		Enum  []string
		AnyOf []enumValue
	}
	MinLength, MaxLength *int
	Minimum, Maximum     *float64
}

type enumValue struct{ Const, Title string }

// newForm reads the params of an elicitation request. Fields keep the order of the server.
func newForm(params json.RawMessage) *form {
	var v struct {
		RequestedSchema struct {
			Properties json.RawMessage `json:"properties"`
			Required   []string        `json:"required"`
		} `json:"requestedSchema"`
	}
	f := &form{}
	if json.Unmarshal(params, &v) != nil {
		return f
	}
	properties := rawObject(v.RequestedSchema.Properties)
	for _, name := range memberNames(v.RequestedSchema.Properties) {
		var p property
		if json.Unmarshal(properties[name], &p) != nil {
			continue
		}
		f.fields = append(f.fields, newField(name, p, slices.Contains(v.RequestedSchema.Required, name)))
	}
	return f
}

func newField(name string, p property, required bool) *field {
	x := &field{name: name, title: p.Title, note: p.Description, kind: p.Type, required: required,
		chosen: map[int]bool{}, minLength: p.MinLength, maxLength: p.MaxLength, minimum: p.Minimum, maximum: p.Maximum}
	if x.title == "" {
		x.title = name
	}
	add := func(value, title string) {
		if title == "" {
			title = value
		}
		x.choices = append(x.choices, choice{label: title, text: value})
	}
	for i, value := range p.Enum {
		title := ""
		if i < len(p.EnumNames) {
			title = p.EnumNames[i]
		}
		add(value, title)
	}
	values := p.OneOf
	if p.Items != nil {
		values = append(values, p.Items.AnyOf...)
		for _, value := range p.Items.Enum {
			add(value, "")
		}
	}
	for _, value := range values {
		add(value.Const, value.Title)
	}
	x.setDefault(p.Default)
	return x
}

// setDefault fills in the value that the server proposes.
func (x *field) setDefault(raw json.RawMessage) {
	var text string
	var all []string
	switch {
	case len(raw) == 0:
	case json.Unmarshal(raw, &x.yes) == nil:
	case json.Unmarshal(raw, &text) == nil && len(x.choices) == 0:
		x.input.set(text)
	case text != "" || json.Unmarshal(raw, &all) == nil:
		for i, c := range x.choices {
			if c.text == text || slices.Contains(all, c.text) {
				x.chosen[i], x.cursor = true, i
			}
		}
	default:
		x.input.set(string(raw))
	}
}

// memberNames returns the names of an object's members in their order.
func memberNames(raw json.RawMessage) (names []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return names
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// insert adds pasted text.
func (f *form) insert(text string) {
	if f.at < len(f.fields) && f.fields[f.at].isText() {
		f.fields[f.at].input.insert(strings.ReplaceAll(text, "\n", " "))
	}
}

func (x *field) isText() bool { return len(x.choices) == 0 && x.kind != "boolean" }

// press handles a key. done reports that the form was sent or declined.
func (f *form) press(name, text string) (done, allow bool) {
	f.fault = ""
	switch name {
	case "esc":
		return true, false
	case "tab", "down":
		f.at = min(f.at+1, max(len(f.fields)-1, 0))
		return false, false
	case "shift+tab", "up":
		f.at = max(f.at-1, 0)
		return false, false
	case "enter":
		if f.at < len(f.fields)-1 {
			if f.fault = f.fields[f.at].check(); f.fault == "" {
				f.at++
			}
			return false, false
		}
		for i, x := range f.fields {
			if f.fault = x.check(); f.fault != "" {
				f.at = i
				return false, false
			}
		}
		return true, true
	}
	if f.at < len(f.fields) {
		f.fields[f.at].press(name, text)
	}
	return false, false
}

// press changes the value of a field.
func (x *field) press(name, text string) {
	switch {
	case x.kind == "boolean":
		if name == "space" || name == "left" || name == "right" {
			x.yes = !x.yes
		}
	case len(x.choices) > 0:
		switch name {
		case "left":
			x.cursor = (x.cursor + len(x.choices) - 1) % len(x.choices)
		case "right":
			x.cursor = (x.cursor + 1) % len(x.choices)
		case "space":
			was := x.chosen[x.cursor]
			if x.kind != "array" {
				clear(x.chosen)
			}
			x.chosen[x.cursor] = !was
		}
	case !x.input.press(name) && text != "":
		x.input.insert(text)
	}
}

// values returns the chosen values of an enumeration.
func (x *field) values() (all []string) {
	for i, c := range x.choices {
		if x.chosen[i] {
			all = append(all, c.text)
		}
	}
	return all
}

// check returns what is wrong with the value; empty if it is right.
func (x *field) check() string {
	text := strings.TrimSpace(x.input.value())
	name := safetext.Line(x.title)
	length := len([]rune(text))
	switch {
	case x.kind == "boolean":
		return ""
	case len(x.choices) > 0:
		if x.required && len(x.values()) == 0 {
			return name + " is required: choose with Space"
		}
		return ""
	case text == "" && x.required:
		return name + " is required"
	case text == "":
		return ""
	case x.minLength != nil && length < *x.minLength:
		return fmt.Sprintf("%s must have at least %d characters", name, *x.minLength)
	case x.maxLength != nil && length > *x.maxLength:
		return fmt.Sprintf("%s may have at most %d characters", name, *x.maxLength)
	}
	if x.kind != "number" && x.kind != "integer" {
		return ""
	}
	number, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !json.Valid([]byte(text)):
		return name + " must be a number"
	case x.kind == "integer" && strings.ContainsAny(text, ".eE"):
		return name + " must be a whole number"
	case x.minimum != nil && number < *x.minimum:
		return fmt.Sprintf("%s must be at least %g", name, *x.minimum)
	case x.maximum != nil && number > *x.maximum:
		return fmt.Sprintf("%s must be at most %g", name, *x.maximum)
	}
	return ""
}

// content returns the values as a JSON object. Fields without a value are left out.
func (f *form) content() json.RawMessage {
	values := map[string]any{}
	for _, x := range f.fields {
		text := strings.TrimSpace(x.input.value())
		chosen := x.values()
		switch {
		case x.kind == "boolean":
			values[x.name] = x.yes
		case x.kind == "array" && chosen != nil:
			values[x.name] = chosen
		case len(x.choices) > 0:
			if len(chosen) > 0 {
				values[x.name] = chosen[0]
			}
		case text == "":
		case x.kind == "number" || x.kind == "integer":
			values[x.name] = json.Number(text)
		default:
			values[x.name] = text
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil
	}
	return raw
}

// lines returns the fields around the current one, and the cursor.
func (f *form) lines(t *transcript, limit int) (lines []string, cursor *tea.Cursor) {
	start := 0
	for i, x := range f.fields {
		title := safetext.Line(x.title)
		if x.required {
			title += " *"
		}
		mark := "  "
		if i == f.at {
			mark, start = "> ", len(lines)
		}
		label := cut(mark+title+": ", t.width/2)
		value, column := x.shown(t, t.width-len([]rune(label)), i == f.at)
		if i == f.at && x.isText() {
			cursor = tea.NewCursor(len([]rune(label))+column, len(lines))
		}
		lines = append(lines, label+value)
		if i == f.at && x.note != "" {
			lines = append(lines, t.paint(dimStyle, cut("    "+x.note, t.width)))
		}
	}
	if f.fault != "" {
		limit = max(limit-1, 1)
	}
	from := min(max(0, start-limit+2), max(0, len(lines)-limit))
	lines = lines[from:min(len(lines), from+limit)]
	if cursor != nil {
		cursor.Y -= from
	}
	if f.fault != "" {
		lines = append(lines, t.paint(badStyle, cut("  "+f.fault, t.width)))
	}
	return lines, cursor
}

// shown returns the value of a field as it is drawn, and the column of the cursor.
func (x *field) shown(t *transcript, width int, current bool) (string, int) {
	if x.kind == "boolean" {
		if x.yes {
			return "[x] yes", 0
		}
		return "[ ] no", 0
	}
	if len(x.choices) == 0 {
		if x.secret {
			hidden := strings.Repeat("•", min(len(x.input.text), max(width-1, 2)))
			return hidden, len([]rune(hidden))
		}
		lines, column, y := x.input.view(max(width-1, 2))
		return lines[y], column
	}
	var b strings.Builder
	for i, c := range x.choices {
		mark := "( )"
		if x.chosen[i] {
			mark = "(x)"
		}
		text := mark + " " + safetext.Line(c.label)
		if i == x.cursor && current {
			text = t.paint(chosenStyle, ">"+text)
		}
		b.WriteString(text + "  ")
	}
	return hardWrap(b.String(), max(width, 8))[0], 0
}

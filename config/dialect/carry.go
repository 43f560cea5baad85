package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A Note is what a person should know of a row that was carried over. It is about a line of the row's file.
type Note struct {
	Line int
	Text string
}

// A tongue is how a program writes a row.
type tongue struct {
	title  string
	fields []field
	// text says a text in our words, its variables too.
	text func(c *carrier, s string) string
	// lively says that a value of env or headers may be a command after "!", or a variable's name, as it may be in ours.
	lively bool
}

// A field is a member that a row may have; carry says it in our words.
type field struct {
	name  string
	carry func(c *carrier, m doc.Member)
}

// maxNotes is how many notes on one row are kept.
const maxNotes = 20

// Carry says a row in our own words: a table with the members of a native row. Dir is the directory that a project's row
// came with, empty for any other row.
func (s *Shape) Carry(row Row, dir string) (doc.Node, []Note) {
	if s.Native || row.Value.Kind != doc.Table {
		return row.Value, nil
	}
	c := &carrier{tongue: s.tongue, from: row.Value, dir: dir, inputs: row.inputs, paired: map[string]bool{}}
	last := map[string]int{}
	for i, m := range row.Value.Members {
		last[m.Name] = i
	}
	for i, m := range row.Value.Members {
		if last[m.Name] == i && m.Value.Kind != doc.Null && (row.NameKey == "" || m.Name != row.NameKey) {
			c.member(m)
		}
	}
	if row.off {
		c.put("enabled", row.Line, doc.Node{Kind: doc.Boolean, Line: row.Line, Text: "false"})
	}
	return doc.Node{Kind: doc.Table, Line: row.Value.Line, Members: c.out}, c.notes
}

// A carrier carries one row over.
type carrier struct {
	tongue *tongue
	// from is the row as it was written, current the member that is being carried.
	from    doc.Node
	current string
	dir     string
	inputs  map[string]string
	// paired has the pairs that are there, by member and name.
	paired map[string]bool
	out    []doc.Member
	notes  []Note
}

func (c *carrier) member(m doc.Member) {
	c.current = m.Name
	fields := c.tongue.fields
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.Name }); i >= 0 {
		fields[i].carry(c, m)
		return
	}
	if len(c.notes) == maxNotes {
		return
	}
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.name)
	}
	c.note(m.Line, "unknown member %s was left out%s", safetext.Quote(m.Name), doc.DidYouMean(m.Name, known))
}

func (c *carrier) note(line int, format string, args ...any) {
	if len(c.notes) == maxNotes {
		return // and costs nothing
	}
	if note := (Note{line, fmt.Sprintf(format, args...)}); !slices.Contains(c.notes, note) {
		c.notes = append(c.notes, note)
	}
}

// put sets a member of our row. What is empty says nothing.
func (c *carrier) put(name string, line int, v doc.Node) {
	empty := v.Kind == doc.Text && v.Text == "" || name != "expected_tools" &&
		(v.Kind == doc.List && len(v.Items) == 0 || v.Kind == doc.Table && len(v.Members) == 0)
	if empty {
		return
	}
	c.out = slices.DeleteFunc(c.out, func(m doc.Member) bool { return m.Name == name })
	c.out = append(c.out, doc.Member{Name: name, Line: line, Value: v})
}

// pair adds a pair to env or headers; the first of a name stays.
func (c *carrier) pair(member, name string, line int, value string) {
	key := member + " " + name
	if c.paired[key] {
		return
	}
	c.paired[key] = true
	v := doc.Member{Name: name, Line: line, Value: doc.Node{Kind: doc.Text, Line: line, Text: value}}
	for i, m := range c.out {
		if m.Name == member && m.Value.Kind == doc.Table {
			c.out[i].Value.Members = append(m.Value.Members, v)
			return
		}
	}
	c.put(member, line, doc.Node{Kind: doc.Table, Line: line, Members: []doc.Member{v}})
}

// texts says all texts of a value in our words.
func (c *carrier) texts(v doc.Node) doc.Node {
	if v.Kind == doc.Text {
		v.Text = c.tongue.text(c, v.Text)
	}
	v.Items = slices.Clone(v.Items)
	for i, item := range v.Items {
		v.Items[i] = c.texts(item)
	}
	return v
}

// same carries a member under our name for it.
func same(name string) func(*carrier, doc.Member) {
	return func(c *carrier, m doc.Member) { c.put(name, m.Line, c.texts(m.Value)) }
}

// raw carries a member as it is: its texts are names.
func raw(name string) func(*carrier, doc.Member) {
	return func(c *carrier, m doc.Member) { c.put(name, m.Line, m.Value) }
}

// ignored is for members that mean something to their own program only, and whose absence changes no server.
func ignored(*carrier, doc.Member) {}

// left is for members that change what a server is or may do and that we have no word for.
func left(why string) func(*carrier, doc.Member) {
	return func(c *carrier, m doc.Member) { c.note(m.Line, "%q was left out: %s", m.Name, why) }
}

const (
	noEnvFile  = "write what the file says as \"env\""
	noSignIn   = "Drawbridge signs in by itself"
	noDenyList = "name the tools that are wanted as \"expected_tools\""
	noStart    = "the time to connect is a setting for all servers, [mcp] connect_timeout"
	noHelper   = "a header's own value may be a command, after \"!\""
	noSandbox  = "Drawbridge does not confine the program in this way"
)

// pairs carries env or headers.
func pairs(name string) func(*carrier, doc.Member) {
	return func(c *carrier, m doc.Member) {
		if m.Value.Kind != doc.Table {
			c.put(name, m.Line, m.Value)
			return
		}
		for _, p := range m.Value.Members {
			switch p.Value.Kind {
			case doc.Text:
				c.pair(name, p.Name, p.Line, c.value(p.Value.Text))
			case doc.Number, doc.Boolean:
				c.pair(name, p.Name, p.Line, p.Value.Text)
			default:
				c.note(p.Line, "%q in %q is no string and was left out", p.Name, m.Name)
			}
		}
	}
}

// value says a value of env or headers. Where the program takes it as it stands, what we would see in it is quoted: only a
// shell's whole command is one here too. The name of a directory may begin as one does.
func (c *carrier) value(s string) string {
	ours := c.tongue.text(c, s)
	if c.tongue.lively || strings.HasPrefix(ours, "!") && wholeCommand.MatchString(s) {
		return ours
	}
	return quote(ours)
}

// command carries a program: a text, or a list of the program and its arguments.
func command(c *carrier, m doc.Member) {
	if m.Value.Kind != doc.List || len(m.Value.Items) == 0 {
		c.put("command", m.Line, c.texts(m.Value))
		return
	}
	all := c.texts(m.Value)
	c.put("command", m.Line, all.Items[0])
	all.Items = all.Items[1:]
	c.put("args", m.Line, all)
}

// transport carries the type. A program to start says by itself that it is one.
func transport(c *carrier, m doc.Member) {
	ours := map[string]string{
		"stdio": "", "local": "", "http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http",
		"remote": "http",
	}
	name, _ := m.Value.Word()
	if word, ok := ours[name]; ok {
		m.Value.Text = word
	}
	c.put("type", m.Line, m.Value)
}

// either carries the type where it only says local or remote: how a url is spoken to is found out.
func either(c *carrier, m doc.Member) {
	if name, _ := m.Value.Word(); name == "remote" || name == "http" {
		return
	}
	transport(c, m)
}

// on carries a member that is false where the server is off. That it is on goes without saying.
func on(c *carrier, m doc.Member) {
	if value, ok := m.Value.Flag(); !ok || !value {
		c.put("enabled", m.Line, m.Value)
	}
}

// off carries a member that is true where the server is off.
func off(c *carrier, m doc.Member) {
	switch value, ok := m.Value.Flag(); {
	case !ok:
		c.note(m.Line, "%q must be true or false; it was ignored", m.Name)
	case value:
		c.put("enabled", m.Line, doc.Node{Kind: doc.Boolean, Line: m.Line, Text: "false"})
	}
}

// seconds carries a timeout whose numbers are seconds.
func seconds(c *carrier, m doc.Member) {
	if s, err := strconv.ParseFloat(m.Value.Text, 64); err == nil && m.Value.Kind == doc.Number {
		m.Value.Text = strconv.FormatFloat(1000*s, 'f', -1, 64)
	}
	c.put("timeout", m.Line, m.Value)
}

// tools carries the list of the only tools that are wanted. Some programs write a tool's arguments behind it.
func tools(c *carrier, m doc.Member) {
	m.Value.Items = slices.Clone(m.Value.Items)
	for i, item := range m.Value.Items {
		m.Value.Items[i].Text, _, _ = strings.Cut(item.Text, "(")
	}
	c.put("expected_tools", m.Line, m.Value)
}

// someTools is tools for programs to which an empty list means all.
func someTools(c *carrier, m doc.Member) {
	if len(m.Value.Items) > 0 || m.Value.Kind != doc.List {
		tools(c, m)
	}
}

// common are the members that nearly all programs have.
func common(more ...field) []field {
	return append([]field{
		{"command", command}, {"args", same("args")}, {"env", pairs("env")}, {"cwd", same("cwd")},
		{"url", same("url")}, {"headers", pairs("headers")}, {"type", transport},
		{"enabled", on}, {"disabled", off},
		{"name", ignored}, {"description", ignored},
	}, more...)
}

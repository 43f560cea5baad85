package clientconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A ConversionNote describes, for people, a part of a row that could not be converted exactly. Line is a line of the
// row's file.
type ConversionNote struct {
	Line int
	Text string
}

// A rowGrammar describes how a program represents a server in a row of its file.
type rowGrammar struct {
	title  string
	fields []memberRule
	// convertText converts a string, and the variables in it, to Drawbridge's format.
	convertText func(c *rowConverter, s string) string
	// takesCommands is set if the program interprets values of env and headers as Drawbridge does. Such a value may be
	// "!" followed by a command, or the bare name of a variable.
	takesCommands bool
}

// A memberRule describes one member of a row. convert converts the member to Drawbridge's format.
type memberRule struct {
	name    string
	convert func(c *rowConverter, m configfile.Member)
}

// maxConversionNotes is the maximum number of notes about one row.
const maxConversionNotes = 20

// ToNative converts a row to Drawbridge's format, and returns it as a table. A row that is in this format already is
// returned unchanged. dir is the directory for placeholders such as ${workspaceFolder}; empty if the row does not
// belong to a directory.
func (s *Dialect) ToNative(row ServerRow, dir string) (configfile.Node, []ConversionNote) {
	if s.Native || row.Value.Kind != configfile.Table {
		return row.Value, nil
	}
	c := &rowConverter{grammar: s.grammar, from: row.Value, dir: dir, inputs: row.inputs, seenPairs: map[string]bool{}}
	last := map[string]int{}
	for i, m := range row.Value.Members {
		last[m.Name] = i
	}
	for i, m := range row.Value.Members {
		if last[m.Name] == i && m.Value.Kind != configfile.Null && (row.NameKey == "" || m.Name != row.NameKey) {
			c.convertMember(m)
		}
	}
	if row.off {
		c.setMember("enabled", row.Line, configfile.Node{Kind: configfile.Boolean, Line: row.Line, Text: "false"})
	}
	return configfile.Node{Kind: configfile.Table, Line: row.Value.Line, Members: c.out}, c.notes
}

// A rowConverter converts one row to Drawbridge's format.
type rowConverter struct {
	grammar *rowGrammar
	// from is the row as written. current is the name of the member that is being converted.
	from    configfile.Node
	current string
	dir     string
	inputs  map[string]string
	// seenPairs contains the pairs that were already added, as "MEMBER NAME", such as "env TOKEN".
	seenPairs map[string]bool
	out       []configfile.Member
	notes     []ConversionNote
}

func (c *rowConverter) convertMember(m configfile.Member) {
	c.current = m.Name
	fields := c.grammar.fields
	if i := slices.IndexFunc(fields, func(f memberRule) bool { return f.name == m.Name }); i >= 0 {
		fields[i].convert(c, m)
		return
	}
	if len(c.notes) == maxConversionNotes {
		return
	}
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.name)
	}
	c.addNote(m.Line, "unknown member %s was left out%s", safetext.Quote(m.Name), configfile.DidYouMean(m.Name, known))
}

func (c *rowConverter) addNote(line int, format string, args ...any) {
	if len(c.notes) == maxConversionNotes {
		return // further notes are dropped
	}
	if note := (ConversionNote{line, fmt.Sprintf(format, args...)}); !slices.Contains(c.notes, note) {
		c.notes = append(c.notes, note)
	}
}

// setMember sets a member of the converted row. An empty value is ignored.
func (c *rowConverter) setMember(name string, line int, v configfile.Node) {
	empty := v.Kind == configfile.Text && v.Text == "" || name != "expected_tools" &&
		(v.Kind == configfile.List && len(v.Items) == 0 || v.Kind == configfile.Table && len(v.Members) == 0)
	if empty {
		return
	}
	c.out = slices.DeleteFunc(c.out, func(m configfile.Member) bool { return m.Name == name })
	c.out = append(c.out, configfile.Member{Name: name, Line: line, Value: v})
}

// addPair adds a name and a value to env or headers. If the name was already added, the first value remains.
func (c *rowConverter) addPair(member, name string, line int, value string) {
	key := member + " " + name
	if c.seenPairs[key] {
		return
	}
	c.seenPairs[key] = true
	v := configfile.Member{Name: name, Line: line, Value: configfile.Node{Kind: configfile.Text,
		Line: line, Text: value}}
	for i, m := range c.out {
		if m.Name == member && m.Value.Kind == configfile.Table {
			c.out[i].Value.Members = append(m.Value.Members, v)
			return
		}
	}
	c.setMember(member, line, configfile.Node{Kind: configfile.Table, Line: line, Members: []configfile.Member{v}})
}

// convertTexts converts all strings of a value to Drawbridge's format.
func (c *rowConverter) convertTexts(v configfile.Node) configfile.Node {
	if v.Kind == configfile.Text {
		v.Text = c.grammar.convertText(c, v.Text)
	}
	v.Items = slices.Clone(v.Items)
	for i, item := range v.Items {
		v.Items[i] = c.convertTexts(item)
	}
	return v
}

// copyAs returns a function that copies a member under its name in Drawbridge's format, and converts its strings.
func copyAs(name string) func(*rowConverter, configfile.Member) {
	return func(c *rowConverter, m configfile.Member) { c.setMember(name, m.Line, c.convertTexts(m.Value)) }
}

// copyVerbatim returns a function that copies a member without converting its strings, which contain no variables.
func copyVerbatim(name string) func(*rowConverter, configfile.Member) {
	return func(c *rowConverter, m configfile.Member) { c.setMember(name, m.Line, m.Value) }
}

// ignoreMember drops a member without a note. It is for members that do not change the server.
func ignoreMember(*rowConverter, configfile.Member) {}

// leaveOut returns a function that drops a member and adds a note with the reason why. It is for members that change
// the server but have no equivalent in Drawbridge's format.
func leaveOut(why string) func(*rowConverter, configfile.Member) {
	return func(c *rowConverter, m configfile.Member) { c.addNote(m.Line, "%q was left out: %s", m.Name, why) }
}

const (
	adviceEnvFile       = "write what the file says as \"env\""
	adviceSignIn        = "Drawbridge signs in by itself"
	adviceDenyList      = "name the tools that are wanted as \"expected_tools\""
	adviceStartTimeout  = "the time to connect is a setting for all servers, [mcp] connect_timeout"
	adviceHeaderCommand = "a header's own value may be a command, after \"!\""
	adviceSandbox       = "Drawbridge does not confine the program in this way"
)

// convertPairs returns a function that converts an object of strings to the member name, which is env or headers.
func convertPairs(name string) func(*rowConverter, configfile.Member) {
	return func(c *rowConverter, m configfile.Member) {
		if m.Value.Kind != configfile.Table {
			c.setMember(name, m.Line, m.Value)
			return
		}
		for _, p := range m.Value.Members {
			switch p.Value.Kind {
			case configfile.Text:
				c.addPair(name, p.Name, p.Line, c.convertValue(p.Value.Text))
			case configfile.Number, configfile.Boolean:
				c.addPair(name, p.Name, p.Line, p.Value.Text)
			default:
				c.addNote(p.Line, "%q in %q is not a string and was left out", p.Name, m.Name)
			}
		}
	}
}

// convertValue converts a value of env or headers. If the program interprets the value literally, convertValue escapes
// text that Drawbridge would interpret as a command or as a variable's name. A value that the program runs as a
// command, "$(…)", becomes "!" followed by the command.
func (c *rowConverter) convertValue(s string) string {
	ours := c.grammar.convertText(c, s)
	if c.grammar.takesCommands || strings.HasPrefix(ours, "!") && wholeCommand().MatchString(s) {
		return ours
	}
	return quoteValue(ours)
}

// convertCommand converts a command: a string, or a list of the program and its arguments.
func convertCommand(c *rowConverter, m configfile.Member) {
	if m.Value.Kind != configfile.List || len(m.Value.Items) == 0 {
		c.setMember("command", m.Line, c.convertTexts(m.Value))
		return
	}
	all := c.convertTexts(m.Value)
	c.setMember("command", m.Line, all.Items[0])
	all.Items = all.Items[1:]
	c.setMember("args", m.Line, all)
}

// convertTransport converts the name of the transport to the member type. The names stdio and local are dropped,
// because the command implies them.
func convertTransport(c *rowConverter, m configfile.Member) {
	ours := map[string]string{
		"stdio": "", "local": "", "http": "http", "streamable-http": "http", "streamableHttp": "http",
		"streamable_http": "http",
		"remote":          "http",
	}
	name, _ := m.Value.TextValue()
	if word, ok := ours[name]; ok {
		m.Value.Text = word
	}
	c.setMember("type", m.Line, m.Value)
}

// convertLocalOrRemote converts a type that is either "local" or "remote". It drops "remote" and "http", because
// Drawbridge detects the transport of a URL.
func convertLocalOrRemote(c *rowConverter, m configfile.Member) {
	if name, _ := m.Value.TextValue(); name == "remote" || name == "http" {
		return
	}
	convertTransport(c, m)
}

// convertEnabled converts a member that is false for a disabled server. The value true is the default and is dropped.
func convertEnabled(c *rowConverter, m configfile.Member) {
	if value, ok := m.Value.Bool(); !ok || !value {
		c.setMember("enabled", m.Line, m.Value)
	}
}

// convertDisabled converts a member that is true for a disabled server.
func convertDisabled(c *rowConverter, m configfile.Member) {
	switch value, ok := m.Value.Bool(); {
	case !ok:
		c.addNote(m.Line, "%q must be true or false; it was ignored", m.Name)
	case value:
		c.setMember("enabled", m.Line, configfile.Node{Kind: configfile.Boolean, Line: m.Line, Text: "false"})
	}
}

// convertSecondsTimeout converts a timeout in seconds to milliseconds.
func convertSecondsTimeout(c *rowConverter, m configfile.Member) {
	if s, err := strconv.ParseFloat(m.Value.Text, 64); err == nil && m.Value.Kind == configfile.Number {
		m.Value.Text = strconv.FormatFloat(1000*s, 'f', -1, 64)
	}
	c.setMember("timeout", m.Line, m.Value)
}

// convertTools converts the list of allowed tools. It removes arguments in parentheses, which some programs append to
// the name of a tool.
func convertTools(c *rowConverter, m configfile.Member) {
	m.Value.Items = slices.Clone(m.Value.Items)
	for i, item := range m.Value.Items {
		m.Value.Items[i].Text, _, _ = strings.Cut(item.Text, "(")
	}
	c.setMember("expected_tools", m.Line, m.Value)
}

// convertToolsIfAny is like convertTools, for programs in which an empty list allows all tools.
func convertToolsIfAny(c *rowConverter, m configfile.Member) {
	if len(m.Value.Items) > 0 || m.Value.Kind != configfile.List {
		convertTools(c, m)
	}
}

// commonMembers returns the rules for the members that nearly all programs have, followed by the rules in more.
func commonMembers(more ...memberRule) []memberRule {
	return append([]memberRule{
		{"command", convertCommand}, {"args", copyAs("args")}, {"env", convertPairs("env")}, {"cwd", copyAs("cwd")},
		{"url", copyAs("url")}, {"headers", convertPairs("headers")}, {"type", convertTransport},
		{"enabled", convertEnabled}, {"disabled", convertDisabled},
		{"name", ignoreMember}, {"description", ignoreMember},
	}, more...)
}

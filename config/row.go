package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/clientconfig"
	"github.com/drawbridge-mcp/drawbridge/internal/configfile"
	"github.com/drawbridge-mcp/drawbridge/internal/launch"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A rowReader reads one row and returns it as a Server.
type rowReader struct {
	server Server
	lookup func(string) (string, bool)
	// dir is the working directory. home is the person's home directory.
	dir, home string
	// approved reports whether a person approved a project's row. If approved is nil, no row is approved.
	approved func(Server) bool
	// disabled maps the name of each server that the person's own files disable to the path of the file that disables
	// it.
	disabled map[string]string
	warnings []Warning
	// refusedBecause is the first reason why the row cannot be mounted; "" if there is none so far.
	refusedBecause string
	// missing contains the names in server.Unresolved.
	missing map[string]bool
	// hasConfinement is true if the row sets "confine".
	hasConfinement bool
}

func (r *rowReader) warn(line int, format string, args ...any) {
	origin := r.server.Origin
	origin.Line = line
	r.warnings = append(r.warnings, Warning{origin, r.server.ID, fmt.Sprintf("Server %q: ", r.server.ID) +
		fmt.Sprintf(format, args...)})
}

func (r *rowReader) refuse(format string, args ...any) {
	if r.refusedBecause == "" {
		r.refusedBecause = fmt.Sprintf("Server %q: ", r.server.ID) + fmt.Sprintf(format, args...)
	}
}

func (r *rowReader) read(in clientconfig.ServerRow) {
	s := &r.server
	s.ID, s.Enabled, r.missing = printableID(in.Name), true, map[string]bool{}
	if in.Value.Kind != configfile.Table {
		r.refuse("a server must be an object")
	}
	last := map[string]int{}
	for i, m := range in.Value.Members {
		last[m.Name] = i
	}
	for i, m := range in.Value.Members {
		if last[m.Name] != i {
			r.warn(m.Line, "%q is written twice; the last one is used", m.Name)
			continue
		}
		r.readMember(m, in.NameKey)
	}
	r.readAuth(in.Value)
	s.Hash = rowHash(in)
	if in.Value.Kind == configfile.Table {
		s.Raw = nativeRow(in).AppendJSON(nil, false)
	}
	r.decidePhase()
}

func (r *rowReader) readMember(m configfile.Member, nameKey string) {
	switch known := findRowMember(m.Name); {
	case m.Value.Kind == configfile.Null: // treated as absent
	case nameKey != "" && m.Name == nameKey: // the row's name was read before
	case known != nil && known.read != nil:
		known.read(r, m.Value)
	default:
		r.server.UnknownMembers = append(r.server.UnknownMembers, UnknownMember{m.Name, m.Value.AppendJSON(nil, false)})
		r.addUnknownMember(m, nameKey)
	}
}

func (r *rowReader) addUnknownMember(m configfile.Member, nameKey string) {
	switch {
	case len(r.warnings) > maxWarnings: // further warnings are only counted
		r.warn(m.Line, "unknown member %q", m.Name)
	case m.Name != "name" && m.Name != "id":
		r.warn(m.Line, "unknown member %q%s", m.Name, configfile.DidYouMean(m.Name, rowMemberNames()))
	case nameKey != "":
		r.warn(m.Line, "%q is not used here; a server is named by %q", m.Name, nameKey)
	case m.Value.Text != string(r.server.ID):
		r.warn(m.Line, "%q is not used here; a server is named by its key", m.Name)
	}
}

// decidePhase sets the Phase of the row and its Reason.
func (r *rowReader) decidePhase() {
	s := &r.server
	if s.Type == "" && s.URL == "" {
		s.Type = "stdio"
	}
	s.Cwd = r.workingDir()
	r.defaultConfinement()
	s.Confine = s.Confine.RelativeTo(s.Cwd)
	if err := s.ID.Validate(); err != nil {
		s.Phase, s.Reason = drawbridge.Refused, err.Error()
		if launch.StartsDrawbridge(s.Command, s.Args) { // a client's entry that starts Drawbridge is named "drawbridge"
			s.Reason = cmp.Or(s.invalidReason(), s.Reason)
		}
		return
	}
	if !s.Enabled {
		s.Phase, s.Reason = drawbridge.Disabled, `"enabled" is false`
		return
	}
	if file := r.disabled[string(s.ID)]; file != "" {
		s.Phase, s.Reason, s.DisabledBy = drawbridge.Disabled, fmt.Sprintf(`"disabledServers" of %s names it`, file),
			file
		return
	}
	if r.refusedBecause == "" {
		r.refusedBecause = s.invalidReason()
	}
	if r.refusedBecause != "" {
		s.Phase, s.Reason = drawbridge.Refused, r.refusedBecause
		return
	}
	if s.Origin.Kind == OriginProject {
		s.Phase, s.Reason = drawbridge.NeedsApproval, "it comes from a project directory and is not approved yet"
		if r.approved == nil || !r.approved(*s) {
			return
		}
	}
	s.Phase, s.Reason = drawbridge.Idle, ""
	if len(s.Unresolved) > 0 {
		r.warn(s.Origin.Line, "variables that are not set were left as written: %s", configfile.JoinFew(s.Unresolved))
	}
}

// workingDir returns the directory in which a stdio server starts. A server in the person's own files runs once for all
// clients, so it does not start in the directory of one client. A project's server starts in the project's directory.
func (r *rowReader) workingDir() string {
	s := &r.server
	switch {
	case s.URL != "" && s.Command == "":
		return s.Cwd
	case s.Cwd == "" && s.Origin.Kind == OriginUser:
		return r.home
	case filepath.IsAbs(s.Cwd):
		return s.Cwd
	}
	return filepath.Join(r.dir, s.Cwd)
}

// printableID returns the name with unsafe characters replaced and its length limited, because a stranger may have
// written the file. A valid name is returned unchanged. The result for an invalid name is also invalid.
func printableID(name string) drawbridge.ServerID {
	const enough = 2 * drawbridge.MaxServerID
	return drawbridge.ServerID(safetext.Line(safetext.Truncate(name, enough, safetext.Bytes, "…")))
}

// rowHash returns the row's Hash. It is the SHA-256 of the name and of the members with inHash, as JSON that is sorted
// by name at every depth.
func rowHash(in clientconfig.ServerRow) string {
	kept := configfile.Node{Kind: configfile.Table,
		Members: []configfile.Member{{Name: "name", Value: configfile.Node{Kind: configfile.Text, Text: in.Name}}}}
	for _, known := range rowMemberTable {
		if m, ok := in.Value.Find(known.name); ok && known.inHash && m.Value.Kind != configfile.Null {
			kept.Members = append(kept.Members, m)
		}
	}
	sum := sha256.Sum256(kept.AppendJSON(nil, true))
	return hex.EncodeToString(sum[:])
}

// nativeRow returns the row as an object that does not contain the server's name. Known members come first, in the
// order of DocumentedFields, then the unknown members.
func nativeRow(in clientconfig.ServerRow) configfile.Node {
	row := configfile.Node{Kind: configfile.Table}
	for _, known := range rowMemberTable {
		if m, ok := in.Value.Find(known.name); ok && known.read != nil && m.Value.Kind != configfile.Null {
			row.Members = append(row.Members, m)
		}
	}
	last := map[string]int{}
	for i, m := range in.Value.Members {
		last[m.Name] = i
	}
	for i, m := range in.Value.Members {
		known := findRowMember(m.Name)
		naming := in.NameKey != "" && m.Name == in.NameKey
		if last[m.Name] == i && !naming && (known == nil || known.read == nil) {
			row.Members = append(row.Members, m)
		}
	}
	return row
}

// readText reads a string and expands variables in it.
func (r *rowReader) readText(name string, v configfile.Node) string {
	s, ok := v.TextValue()
	if !ok {
		r.refuse("%q must be a string", name)
	}
	return r.expandVariables(name, s)
}

// readWord reads a keyword: a string in which variables are not expanded. allowed lists the permitted values; if it is
// empty, any value is permitted.
func (r *rowReader) readWord(name string, v configfile.Node, allowed ...string) string {
	s, ok := v.TextValue()
	switch {
	case !ok:
		r.refuse("%q must be a string", name)
	case len(allowed) > 0 && !slices.Contains(allowed, s):
		r.refuse("%q must be %s", name, configfile.JoinOr(allowed))
	}
	return s
}

func (r *rowReader) readFlag(name string, v configfile.Node) *bool {
	b, ok := v.Bool()
	if !ok {
		r.refuse("%q must be true or false", name)
		return nil
	}
	return &b
}

func (r *rowReader) readTransport(v configfile.Node) {
	name := r.readWord("type", v)
	known, ok := transportTypes[name]
	if !ok && name != "" {
		r.refuse("unknown server type %q", name)
	}
	r.server.Type = known
}

func (r *rowReader) readArgs(v configfile.Node) {
	if v.Kind != configfile.List {
		r.refuse(`"args" must be a list of strings`)
	}
	for i, item := range v.Items {
		s, ok := item.TextValue()
		if !ok {
			r.warn(item.Line, `"args" item %d is not a string and was left out`, i+1)
			continue
		}
		r.server.Args = append(r.server.Args, r.expandVariables("args", s))
	}
}

// readPairs reads an object of strings, in the file's order. If a name occurs twice, its last value is used.
func (r *rowReader) readPairs(name string, v configfile.Node) []NameValue {
	if v.Kind != configfile.Table {
		r.refuse("%q must be an object of strings", name)
	}
	last := map[string]int{}
	for i, m := range v.Members {
		if m.Value.Kind == configfile.Text || m.Value.Kind == configfile.Number || m.Value.Kind == configfile.Boolean {
			last[m.Name] = i
		}
	}
	var pairs []NameValue
	at := map[string]int{}
	for i, m := range v.Members {
		switch m.Value.Kind {
		case configfile.Text, configfile.Number, configfile.Boolean:
		default:
			r.warn(m.Line, "%q in %q is not a string and was left out", m.Name, name)
			continue
		}
		if _, ok := at[m.Name]; !ok {
			at[m.Name] = len(pairs)
			pairs = append(pairs, NameValue{Name: m.Name})
		}
		if last[m.Name] == i {
			pairs[at[m.Name]].Value = r.expandValue(name, m.Name, m.Value.Text)
		}
	}
	return pairs
}

// expandValue returns a value of env or headers with its variables expanded. If the whole value is the name of a
// variable that is set and not empty, the result is the content of this variable. Content of a variable that looks like
// a command or a variable's name is not interpreted again.
func (r *rowReader) expandValue(member, name, written string) string {
	kind := strings.TrimSuffix(member, "s") + " "
	value := r.readSecret(kind+name, written)
	if value != written || !variablePattern().MatchString(value) {
		return value
	}
	if found, ok := r.lookup(value); ok && found != "" {
		r.server.FromVariables = append(r.server.FromVariables, kind+safetext.Line(name)+" from "+value)
		return found
	}
	return value
}

// variablePattern matches the name of an environment variable.
var variablePattern = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readEnabled reads the member enabled. An invalid value causes only a warning and leaves the server enabled, because
// the programs whose files people import are lenient too.
func (r *rowReader) readEnabled(v configfile.Node) {
	switch {
	case v.Kind != configfile.Boolean && v.Kind != configfile.Text:
	case v.Text == "true" || v.Text == "1":
		return
	case v.Text == "false" || v.Text == "0":
		r.server.Enabled = false
		return
	}
	r.warn(v.Line, `"enabled" must be true or false; it was ignored`)
}

func (r *rowReader) readTimeout(v configfile.Node) {
	d, ok := v.Duration()
	if !ok || d <= 0 {
		r.warn(v.Line, `"timeout" must be a number of milliseconds above 0, or a time such as "30s"; it was ignored`)
		return
	}
	r.server.Timeout = d
}

func (r *rowReader) readIdleStop(v configfile.Node) {
	if s, ok := v.TextValue(); ok && s == "never" {
		r.server.IdleStop = -1
		return
	}
	d, ok := v.Duration()
	if !ok || d <= 0 {
		r.warn(v.Line, `"idle_stop" must be a time above 0 such as "15m", a number of milliseconds, or "never"; it was ignored`)
		return
	}
	r.server.IdleStop = d
}

func (r *rowReader) readExpectedTools(v configfile.Node) {
	names, ok := v.TextValues()
	if !ok {
		r.refuse(`"expected_tools" must be a list of strings`)
		return
	}
	r.server.ExpectedTools = &names
}

func (r *rowReader) readPositiveInt(name string, to *int, v configfile.Node) {
	n, ok := v.PositiveInt()
	if !ok {
		r.refuse("%q must be a whole number above 0", name)
	}
	*to = n
}

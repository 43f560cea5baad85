package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/config/dialect"
	"github.com/drawbridge-mcp/drawbridge/config/doc"
	"github.com/drawbridge-mcp/drawbridge/config/spawn"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

// A rowReader turns one row into a Server.
type rowReader struct {
	server Server
	lookup func(string) (string, bool)
	// dir is the working directory, home the person's.
	dir, home string
	// approved says whether a person approved a project's row; nil approves none.
	approved func(Server) bool
	// disabled has the names that the person's own files turn off, and the file that says so.
	disabled map[string]string
	warnings []Warning
	// fault is the first thing that keeps the row from being mounted.
	fault string
	// missing has the names that are in server.Unresolved.
	missing map[string]bool
}

func (r *rowReader) warn(line int, format string, args ...any) {
	origin := r.server.Origin
	origin.Line = line
	r.warnings = append(r.warnings, Warning{origin, r.server.ID, fmt.Sprintf("Server %q: ", r.server.ID) + fmt.Sprintf(format, args...)})
}

func (r *rowReader) refuse(format string, args ...any) {
	if r.fault == "" {
		r.fault = fmt.Sprintf("Server %q: ", r.server.ID) + fmt.Sprintf(format, args...)
	}
}

func (r *rowReader) read(in dialect.Row) {
	s := &r.server
	s.ID, s.Enabled, r.missing = idOf(in.Name), true, map[string]bool{}
	if in.Value.Kind != doc.Table {
		r.refuse("a server must be an object")
	}
	last := map[string]int{}
	for i, m := range in.Value.Members {
		last[m.Name] = i
	}
	for i, m := range in.Value.Members {
		if last[m.Name] != i {
			r.warn(m.Line, "%q is written twice; the last one counts", m.Name)
			continue
		}
		r.member(m, in.NameKey)
	}
	r.signIn(in.Value)
	s.Hash = hashOf(in)
	if in.Value.Kind == doc.Table {
		s.Row = written(in).AppendJSON(nil, false)
	}
	r.settle()
}

func (r *rowReader) member(m doc.Member, nameKey string) {
	switch known := memberNamed(m.Name); {
	case m.Value.Kind == doc.Null: // as good as absent
	case nameKey != "" && m.Name == nameKey: // it was read to find the row's name
	case known != nil && known.read != nil:
		known.read(r, m.Value)
	default:
		r.server.Extra = append(r.server.Extra, Unknown{m.Name, m.Value.AppendJSON(nil, false)})
		r.unknown(m, nameKey)
	}
}

func (r *rowReader) unknown(m doc.Member, nameKey string) {
	switch {
	case len(r.warnings) > maxWarnings: // what comes now is only counted
		r.warn(m.Line, "unknown member %q", m.Name)
	case m.Name != "name" && m.Name != "id":
		r.warn(m.Line, "unknown member %q%s", m.Name, doc.DidYouMean(m.Name, memberNames()))
	case nameKey != "":
		r.warn(m.Line, "%q is not used here; a server is named by %q", m.Name, nameKey)
	case m.Value.Text != string(r.server.ID):
		r.warn(m.Line, "%q is not used here; a server is named by its key", m.Name)
	}
}

// settle decides whether the row may be mounted.
func (r *rowReader) settle() {
	s := &r.server
	if s.Type == "" && s.URL == "" {
		s.Type = "stdio"
	}
	s.Cwd = r.cwd()
	s.Confine = s.Confine.Within(s.Cwd)
	if err := s.ID.Valid(); err != nil {
		s.Phase, s.Reason = drawbridge.Refused, err.Error()
		if spawn.StartsDrawbridge(s.Command, s.Args) { // the entry by which a client starts us has our name
			s.Reason = cmp.Or(s.check(), s.Reason)
		}
		return
	}
	if !s.Enabled {
		s.Phase, s.Reason = drawbridge.Disabled, `"enabled" is false`
		return
	}
	if file := r.disabled[string(s.ID)]; file != "" {
		s.Phase, s.Reason, s.DisabledBy = drawbridge.Disabled, fmt.Sprintf(`"disabledServers" of %s names it`, file), file
		return
	}
	if r.fault == "" {
		r.fault = s.check()
	}
	if r.fault != "" {
		s.Phase, s.Reason = drawbridge.Refused, r.fault
		return
	}
	if s.Origin.Kind == Project {
		s.Phase, s.Reason = drawbridge.NeedsApproval, "it comes from a project directory, and nobody has approved it"
		if r.approved == nil || !r.approved(*s) {
			return
		}
	}
	s.Phase, s.Reason = drawbridge.Idle, ""
	if len(s.Unresolved) > 0 {
		r.warn(s.Origin.Line, "variables that are not set were left as written: %s", doc.Some(s.Unresolved))
	}
}

// cwd is the directory that a stdio server starts in. One process of the person's own serves all hosts of the machine, so
// that the directory one of them happens to be in must not decide; a project's server belongs to its directory.
func (r *rowReader) cwd() string {
	s := &r.server
	switch {
	case s.URL != "" && s.Command == "":
		return s.Cwd
	case s.Cwd == "" && s.Origin.Kind == User:
		return r.home
	case filepath.IsAbs(s.Cwd):
		return s.Cwd
	}
	return filepath.Join(r.dir, s.Cwd)
}

// idOf is the name as people are shown it: a file from a stranger's project must not write to a terminal. Only a name
// that is not valid is changed, and it stays so.
func idOf(name string) drawbridge.ServerID {
	const enough = 2 * drawbridge.MaxServerID
	return drawbridge.ServerID(safetext.Line(safetext.Truncate(name, enough, safetext.Bytes, "…")))
}

// hashOf is the row's Hash: SHA-256 over the members that count, as JSON sorted by name at every depth.
func hashOf(in dialect.Row) string {
	kept := doc.Node{Kind: doc.Table, Members: []doc.Member{{Name: "name", Value: doc.Node{Kind: doc.Text, Text: in.Name}}}}
	for _, known := range rowMembers {
		if m, ok := in.Value.Find(known.name); ok && known.hashed && m.Value.Kind != doc.Null {
			kept.Members = append(kept.Members, m)
		}
	}
	sum := sha256.Sum256(kept.AppendJSON(nil, true))
	return hex.EncodeToString(sum[:])
}

// written is the row as it would stand under its name in the object form: the members that are known in our order, then
// the others.
func written(in dialect.Row) doc.Node {
	row := doc.Node{Kind: doc.Table}
	for _, known := range rowMembers {
		if m, ok := in.Value.Find(known.name); ok && known.read != nil && m.Value.Kind != doc.Null {
			row.Members = append(row.Members, m)
		}
	}
	last := map[string]int{}
	for i, m := range in.Value.Members {
		last[m.Name] = i
	}
	for i, m := range in.Value.Members {
		known := memberNamed(m.Name)
		naming := in.NameKey != "" && m.Name == in.NameKey
		if last[m.Name] == i && !naming && (known == nil || known.read == nil) {
			row.Members = append(row.Members, m)
		}
	}
	return row
}

// text reads a text and puts variables in.
func (r *rowReader) text(name string, v doc.Node) string {
	s, ok := v.Word()
	if !ok {
		r.refuse("%q must be a string", name)
	}
	return r.expand(name, s)
}

// word reads a text without variables: a word that means something here. Allowed lists what it may be; none means
// anything.
func (r *rowReader) word(name string, v doc.Node, allowed ...string) string {
	s, ok := v.Word()
	switch {
	case !ok:
		r.refuse("%q must be a string", name)
	case len(allowed) > 0 && !slices.Contains(allowed, s):
		r.refuse("%q must be %s", name, doc.Choice(allowed))
	}
	return s
}

func (r *rowReader) flag(name string, v doc.Node) *bool {
	b, ok := v.Flag()
	if !ok {
		r.refuse("%q must be true or false", name)
		return nil
	}
	return &b
}

func (r *rowReader) transport(v doc.Node) {
	name := r.word("type", v)
	known, ok := transports[name]
	if !ok && name != "" {
		r.refuse("unknown server type %q", name)
	}
	r.server.Type = known
}

func (r *rowReader) args(v doc.Node) {
	if v.Kind != doc.List {
		r.refuse(`"args" must be a list of strings`)
	}
	for i, item := range v.Items {
		s, ok := item.Word()
		if !ok {
			r.warn(item.Line, `"args" item %d is no string and was left out`, i+1)
			continue
		}
		r.server.Args = append(r.server.Args, r.expand("args", s))
	}
}

// pairs reads names and values in the file's order.
func (r *rowReader) pairs(name string, v doc.Node) []Pair {
	if v.Kind != doc.Table {
		r.refuse("%q must be an object of strings", name)
	}
	last := map[string]int{}
	for i, m := range v.Members {
		if m.Value.Kind == doc.Text || m.Value.Kind == doc.Number || m.Value.Kind == doc.Boolean {
			last[m.Name] = i
		}
	}
	var pairs []Pair
	at := map[string]int{}
	for i, m := range v.Members {
		switch m.Value.Kind {
		case doc.Text, doc.Number, doc.Boolean:
		default:
			r.warn(m.Line, "%q in %q is no string and was left out", m.Name, name)
			continue
		}
		if _, ok := at[m.Name]; !ok {
			at[m.Name] = len(pairs)
			pairs = append(pairs, Pair{Name: m.Name})
		}
		if last[m.Name] == i {
			pairs[at[m.Name]].Value = r.value(name, m.Name, m.Value.Text)
		}
	}
	return pairs
}

// value puts in what a value of env or headers names: variables, or as a whole one variable. What is written decides, not
// what was put in: the content of a variable is never taken for a command or a name.
func (r *rowReader) value(member, name, written string) string {
	kind := strings.TrimSuffix(member, "s") + " "
	value := r.secret(kind+name, written)
	if value != written || !variable.MatchString(value) {
		return value
	}
	if found, ok := r.lookup(value); ok && found != "" {
		r.server.FromEnv = append(r.server.FromEnv, kind+safetext.Line(name)+" from "+value)
		return found
	}
	return value
}

// variable is what the name of a variable may be.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// enabled is lenient, as the programs are whose files people bring: what cannot be read leaves the server on.
func (r *rowReader) enabled(v doc.Node) {
	switch {
	case v.Kind != doc.Boolean && v.Kind != doc.Text:
	case v.Text == "true" || v.Text == "1":
		return
	case v.Text == "false" || v.Text == "0":
		r.server.Enabled = false
		return
	}
	r.warn(v.Line, `"enabled" must be true or false; it was ignored`)
}

func (r *rowReader) timeout(v doc.Node) {
	d, ok := v.Duration()
	if !ok || d <= 0 {
		r.warn(v.Line, `"timeout" must be a number of milliseconds above 0, or a time such as "30s"; it was ignored`)
		return
	}
	r.server.Timeout = d
}

func (r *rowReader) idleStop(v doc.Node) {
	if s, ok := v.Word(); ok && s == "never" {
		r.server.IdleStop = -1
		return
	}
	d, ok := v.Duration()
	if !ok || d <= 0 {
		r.warn(v.Line, `"idle_stop" must be a time above 0 such as "15m", or "never"; it was ignored`)
		return
	}
	r.server.IdleStop = d
}

func (r *rowReader) expectedTools(v doc.Node) {
	names, ok := v.Words()
	if !ok {
		r.refuse(`"expected_tools" must be a list of strings`)
		return
	}
	r.server.ExpectedTools = &names
}

func (r *rowReader) whole(name string, to *int, v doc.Node) {
	n, ok := v.Count()
	if !ok {
		r.refuse("%q must be a whole number above 0", name)
	}
	*to = n
}

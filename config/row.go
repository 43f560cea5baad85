package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge/config/doc"

	"github.com/drawbridge-mcp/drawbridge"
)

// A row is one server as a file has it.
type row struct {
	// name is what the file calls it: the key in the object form, the member nameKey in the array form.
	name, nameKey string
	line          int
	value         doc.Node
}

// A rowReader turns one row into a Server.
type rowReader struct {
	server   Server
	dir      string
	lookup   func(string) (string, bool)
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

func (r *rowReader) read(in row) {
	s := &r.server
	s.ID, s.Enabled, r.missing = idOf(in.name), true, map[string]bool{}
	if in.value.Kind != doc.Table {
		r.refuse("a server must be an object")
	}
	last := map[string]int{}
	for i, m := range in.value.Members {
		last[m.Name] = i
	}
	for i, m := range in.value.Members {
		if last[m.Name] != i {
			r.warn(m.Line, "%q is written twice; the last one counts", m.Name)
			continue
		}
		r.member(m, in.nameKey)
	}
	s.Hash = hashOf(in)
	r.settle()
}

func (r *rowReader) member(m doc.Member, nameKey string) {
	switch known := memberNamed(m.Name); {
	case m.Value.Kind == doc.Null: // as good as absent
	case m.Name == nameKey: // it was read to find the row's name
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
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		s.Cwd = filepath.Join(r.dir, s.Cwd)
	}
	if err := s.ID.Valid(); err != nil {
		s.Phase, s.Reason = drawbridge.Refused, err.Error()
		return
	}
	if !s.Enabled {
		s.Phase, s.Reason = drawbridge.Disabled, `"enabled" is false`
		return
	}
	if r.fault == "" {
		r.fault = s.check()
	}
	switch {
	case r.fault != "":
		s.Phase, s.Reason = drawbridge.Refused, r.fault
		return
	case s.Origin.Kind == Project:
		s.Phase, s.Reason = drawbridge.NeedsApproval, "it comes from a project directory, and nobody has approved it"
		return
	}
	s.Phase = drawbridge.Idle
	if len(s.Unresolved) > 0 {
		r.warn(s.Origin.Line, "variables that are not set were left as written: %s", doc.Some(s.Unresolved))
	}
}

// idOf is the name as people are shown it: a file from a stranger's project must not write to a terminal. Only a name
// that is not valid is changed, and it stays so.
func idOf(name string) drawbridge.ServerID {
	const enough = 2 * drawbridge.MaxServerID
	if len(name) > enough {
		name = name[:enough] + "…"
	}
	return drawbridge.ServerID(doc.Printable(name))
}

// hashOf is the row's Hash: SHA-256 over the members that count, as JSON sorted by name at every depth.
func hashOf(in row) string {
	kept := doc.Node{Kind: doc.Table, Members: []doc.Member{{Name: "name", Value: doc.Node{Kind: doc.Text, Text: in.name}}}}
	for _, known := range rowMembers {
		if m, ok := in.value.Find(known.name); ok && known.hashed && m.Value.Kind != doc.Null {
			kept.Members = append(kept.Members, m)
		}
	}
	sum := sha256.Sum256(kept.AppendJSON(nil, true))
	return hex.EncodeToString(sum[:])
}

// text reads a text and puts variables in.
func (r *rowReader) text(name string, v doc.Node) string {
	s, ok := v.Word()
	if !ok {
		r.refuse("%q must be a string", name)
	}
	return r.expand(s)
}

func (r *rowReader) expand(s string) string {
	return expand(s, r.lookup, func(name string) {
		if !r.missing[name] {
			r.missing[name] = true
			r.server.Unresolved = append(r.server.Unresolved, name)
		}
	})
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
		r.server.Args = append(r.server.Args, r.expand(s))
	}
}

// pairs reads names and values in the file's order.
func (r *rowReader) pairs(name string, v doc.Node) []Pair {
	if v.Kind != doc.Table {
		r.refuse("%q must be an object of strings", name)
	}
	var pairs []Pair
	at := map[string]int{}
	for _, m := range v.Members {
		switch m.Value.Kind {
		case doc.Text, doc.Number, doc.Boolean:
		default:
			r.warn(m.Line, "%q in %q is no string and was left out", m.Name, name)
			continue
		}
		pair := Pair{m.Name, r.expand(m.Value.Text)}
		if i, ok := at[m.Name]; ok {
			pairs[i] = pair
			continue
		}
		at[m.Name] = len(pairs)
		pairs = append(pairs, pair)
	}
	return pairs
}

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

func (r *rowReader) maxTools(v doc.Node) {
	n, ok := v.Count()
	if !ok {
		r.refuse(`"max_tools" must be a whole number above 0`)
	}
	r.server.MaxTools = n
}

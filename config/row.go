package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
)

// A row is one server as a file has it.
type row struct {
	// name is what the file calls it: the key in the object form, the member nameKey in the array form.
	name, nameKey string
	line          int
	value         node
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
	if in.value.kind != table {
		r.refuse("a server must be an object")
	}
	last := map[string]int{}
	for i, m := range in.value.members {
		last[m.name] = i
	}
	for i, m := range in.value.members {
		if last[m.name] != i {
			r.warn(m.line, "%q is written twice; the last one counts", m.name)
			continue
		}
		r.member(m, in.nameKey)
	}
	s.Hash = hashOf(in)
	r.settle()
}

func (r *rowReader) member(m member, nameKey string) {
	switch known := memberNamed(m.name); {
	case m.value.kind == null: // as good as absent
	case m.name == nameKey: // it was read to find the row's name
	case known != nil && known.read != nil:
		known.read(r, m.value)
	default:
		r.server.Extra = append(r.server.Extra, Unknown{m.name, m.value.appendJSON(nil, false)})
		r.unknown(m, nameKey)
	}
}

func (r *rowReader) unknown(m member, nameKey string) {
	switch {
	case len(r.warnings) > maxWarnings: // what comes now is only counted
		r.warn(m.line, "unknown member %q", m.name)
	case m.name != "name" && m.name != "id":
		r.warn(m.line, "unknown member %q%s", m.name, didYouMean(m.name, memberNames()))
	case nameKey != "":
		r.warn(m.line, "%q is not used here; a server is named by %q", m.name, nameKey)
	case m.value.text != string(r.server.ID):
		r.warn(m.line, "%q is not used here; a server is named by its key", m.name)
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
		r.warn(s.Origin.Line, "variables that are not set were left as written: %s", some(s.Unresolved))
	}
}

// idOf is the name as people are shown it: a file from a stranger's project must not write to a terminal. Only a name
// that is not valid is changed, and it stays so.
func idOf(name string) drawbridge.ServerID {
	const enough = 2 * drawbridge.MaxServerID
	if len(name) > enough {
		name = name[:enough] + "…"
	}
	return drawbridge.ServerID(printable(name))
}

// hashOf is the row's Hash: SHA-256 over the members that count, as JSON sorted by name at every depth.
func hashOf(in row) string {
	kept := node{kind: table, members: []member{{name: "name", value: node{kind: text, text: in.name}}}}
	for _, known := range rowMembers {
		if m, ok := in.value.find(known.name); ok && known.hashed && m.value.kind != null {
			kept.members = append(kept.members, m)
		}
	}
	sum := sha256.Sum256(kept.appendJSON(nil, true))
	return hex.EncodeToString(sum[:])
}

// text reads a text and puts variables in.
func (r *rowReader) text(name string, v node) string {
	s, ok := v.word()
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
func (r *rowReader) word(name string, v node, allowed ...string) string {
	s, ok := v.word()
	switch {
	case !ok:
		r.refuse("%q must be a string", name)
	case len(allowed) > 0 && !slices.Contains(allowed, s):
		r.refuse("%q must be %s", name, choice(allowed))
	}
	return s
}

func (r *rowReader) flag(name string, v node) *bool {
	b, ok := v.flag()
	if !ok {
		r.refuse("%q must be true or false", name)
		return nil
	}
	return &b
}

func (r *rowReader) transport(v node) {
	name := r.word("type", v)
	known, ok := transports[name]
	if !ok && name != "" {
		r.refuse("unknown server type %q", name)
	}
	r.server.Type = known
}

func (r *rowReader) args(v node) {
	if v.kind != list {
		r.refuse(`"args" must be a list of strings`)
	}
	for i, item := range v.items {
		s, ok := item.word()
		if !ok {
			r.warn(item.line, `"args" item %d is no string and was left out`, i+1)
			continue
		}
		r.server.Args = append(r.server.Args, r.expand(s))
	}
}

// pairs reads names and values in the file's order.
func (r *rowReader) pairs(name string, v node) []Pair {
	if v.kind != table {
		r.refuse("%q must be an object of strings", name)
	}
	var pairs []Pair
	at := map[string]int{}
	for _, m := range v.members {
		switch m.value.kind {
		case text, number, boolean:
		default:
			r.warn(m.line, "%q in %q is no string and was left out", m.name, name)
			continue
		}
		pair := Pair{m.name, r.expand(m.value.text)}
		if i, ok := at[m.name]; ok {
			pairs[i] = pair
			continue
		}
		at[m.name] = len(pairs)
		pairs = append(pairs, pair)
	}
	return pairs
}

// enabled is lenient, as the programs are whose files people bring: what cannot be read leaves the server on.
func (r *rowReader) enabled(v node) {
	switch {
	case v.kind != boolean && v.kind != text:
	case v.text == "true" || v.text == "1":
		return
	case v.text == "false" || v.text == "0":
		r.server.Enabled = false
		return
	}
	r.warn(v.line, `"enabled" must be true or false; it was ignored`)
}

func (r *rowReader) timeout(v node) {
	d, ok := v.duration()
	if !ok || d <= 0 {
		r.warn(v.line, `"timeout" must be a number of milliseconds above 0, or a time such as "30s"; it was ignored`)
		return
	}
	r.server.Timeout = d
}

func (r *rowReader) idleStop(v node) {
	if s, ok := v.word(); ok && s == "never" {
		r.server.IdleStop = -1
		return
	}
	d, ok := v.duration()
	if !ok || d <= 0 {
		r.warn(v.line, `"idle_stop" must be a time above 0 such as "15m", or "never"; it was ignored`)
		return
	}
	r.server.IdleStop = d
}

func (r *rowReader) expectedTools(v node) {
	names, ok := v.words()
	if !ok {
		r.refuse(`"expected_tools" must be a list of strings`)
		return
	}
	r.server.ExpectedTools = &names
}

func (r *rowReader) maxTools(v node) {
	n, ok := v.count()
	if !ok {
		r.refuse(`"max_tools" must be a whole number above 0`)
	}
	r.server.MaxTools = n
}

package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/naming"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server with skills (extension io.modelcontextprotocol/skills, SEP-2640) lists them by "skills/list", gives one by
// "skills/get", and serves their files as resources; with "directoryRead" it lists directories as well. There is no notice
// that its skills have changed, only a time that a list may be kept, so the deck does not enrol skills: it asks for them
// when a caller does, as that caller, and keeps for each principal what a server said last.
//
// A skill is a space of URIs: all below the directory of its SKILL.md. A space belongs to the first server, in
// configuration order, that has a skill there, unless a server lists a resource in it: then it is that server's. Another
// server's skill there has its server in every URI of its entry; names, digests and all else of it stay as they are, for a
// host compares them with what it reads. Where names are bare the later skill is not listed.

// doSkill carries out a request about skills, but for their list, which is a list like others.
func (d *Deck) doSkill(ctx context.Context, call drawbridge.Call) (drawbridge.Result, error) {
	can := func(m *member) bool { return m.skills }
	switch call.Method {
	case wire.MethodSkillsGet:
	case wire.MethodDirectoryRead:
		can = func(m *member) bool { return m.directories }
	default:
		return drawbridge.Result{}, noMethod(call.Method)
	}
	if len(d.able(ctx, call.Caller, can)) == 0 {
		return drawbridge.Result{}, noMethod(call.Method)
	}
	p, err := readParams(call.Method, call.Params)
	if err != nil {
		return drawbridge.Result{}, err
	}
	t, err := d.findResource(ctx, call.Caller, p.name)
	if err != nil {
		return drawbridge.Result{}, unknown(wordOf(call.Method), p.name)
	}
	if m := d.view.Load().member(t.spec.Server); m == nil || !can(m) {
		return drawbridge.Result{}, unknown(wordOf(call.Method), p.name)
	}
	return d.carry(ctx, call, t.rewritten(p.name, "uri"), p)
}

// able gives the servers that the caller may know of and that can do something. Before it says that there is none it waits
// for servers that are about to appear.
func (d *Deck) able(ctx context.Context, caller drawbridge.Caller, can func(*member) bool) []*member {
	look := func() (out []*member) {
		for _, m := range d.view.Load().members {
			if can(m) && caller.Holds(m.scopes) {
				out = append(out, m)
			}
		}
		return out
	}
	out := look()
	if len(out) == 0 && d.beforeList != nil {
		d.beforeList(ctx)
		out = look()
	}
	return out
}

func hasSkills(m *member) bool { return m.skills }

// listSkills is the answer to skills/list. A server that does not answer now has the skills that it had; only where no
// server ever said what it has is that a fault.
func (d *Deck) listSkills(ctx context.Context, caller drawbridge.Caller) (List, error) {
	members := d.able(ctx, caller, hasSkills)
	if len(members) == 0 {
		return List{}, noMethod(wire.MethodSkillsList)
	}
	s, err := d.skillsOf(ctx, caller, members, 0)
	if err != nil {
		return List{}, err
	}
	now, whole := d.now(), true
	groups := make([]group, 0, len(s.catalogues)+1)
	for _, m := range s.view.members {
		whole = whole && caller.Holds(m.scopes)
		if m.listing == nil && caller.Holds(m.scopes) {
			groups = append(groups, group{hint: &drawbridge.Hint{}}) // it may have skills too
		}
	}
	for _, c := range s.catalogues {
		hint := c.hintAt(now)
		groups = append(groups, group{hint: &hint})
	}
	return List{Items: s.items, Hint: hintOf(groups, whole), Version: s.version}, nil
}

// skillOwner finds the server in whose skills the URI lies.
func (d *Deck) skillOwner(ctx context.Context, v *view, caller drawbridge.Caller, uri string) (target, bool) {
	var members []*member
	others := 0
	for _, m := range v.members {
		switch {
		case !caller.Holds(m.scopes):
		case m.skills:
			members = append(members, m)
		case m.hasResources():
			others++
		}
	}
	if len(members)+others < 2 || len(members) == 0 {
		return target{}, false // there is no question whose it is
	}
	s, err := d.skillsOf(ctx, caller, members, routeAge)
	if err != nil {
		return target{}, false
	}
	if m := s.owner(uri); m != nil {
		return m.unlisted(uri, uri), true
	}
	return target{}, false
}

// probeSkill asks the servers with skills, in their order, for one that none of them lists: a list may leave out any. Each
// is asked as it would be if it were the only one.
func (d *Deck) probeSkill(ctx context.Context, caller drawbridge.Caller, uri string) (target, bool) {
	if rootOf(uri) == "" {
		return target{}, false
	}
	for _, m := range d.able(ctx, caller, hasSkills) {
		t := m.unlisted(uri, uri)
		call := drawbridge.Call{Caller: caller, Method: wire.MethodSkillsGet, Params: wire.Apply(nil, wire.Put(wire.Quote(uri), "uri"))}
		result, err := d.carry(ctx, call, t, params{name: uri})
		if err != nil {
			continue
		}
		if entry, reason := readSkill(wire.Get(result.Raw, "skill")); reason == "" && entry.uri == uri {
			d.skills.found(caller.Principal, m, entry)
			return t, true
		}
	}
	return target{}, false
}

// Bounds of what one server can make the deck read and keep of its skills.
const (
	maxSkillPages = 100
	maxSkills     = 10_000
	maxSkillBytes = 16 << 20
	// skillTime is how long one server may take to list its skills.
	skillTime = 10 * time.Second
	// maxSkillAge is how long a list is answered from what a server said, however long it allows; awayAge is how long one
	// that did not answer is not asked again.
	maxSkillAge = 5 * time.Minute
	awayAge     = 5 * time.Second
	// routeAge is how long a URI is looked up in what a server said, whatever it allows.
	routeAge = time.Minute
)

// skillsOf gives the skills of servers as the principal of the caller may see them: of those that were asked longer ago than
// age, or than they allow where age is 0, newly asked. The error is that of the first server where none ever answered.
func (d *Deck) skillsOf(ctx context.Context, caller drawbridge.Caller, members []*member, age time.Duration) (*skillset, error) {
	catalogues := make([]*catalogue, 0, len(members))
	var refusal error
	answered := false
	for _, m := range members {
		c := d.skills.get(caller.Principal, m)
		if c == nil || !c.fresh(m, d.now(), age) {
			asked, err := d.fetchSkills(ctx, caller, m)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c = c.renewed(asked, err, m, d.now())
			d.skills.put(caller.Principal, c)
		}
		answered = answered || c.said
		if refusal == nil {
			refusal = c.refusal
		}
		catalogues = append(catalogues, c)
	}
	if !answered {
		return nil, refusal
	}
	s, fresh := d.skills.together(caller.Principal, d.view.Load(), catalogues, d.maker.naming, d.version)
	for _, clash := range fresh {
		d.log.Warn("a server has a skill where an earlier one has something", "server", clash.server, "winner", clash.Winner,
			"first", clash.Name, "listed", clash.Listed)
	}
	return s, nil
}

// fetchSkills asks a server for its skills, page by page.
func (d *Deck) fetchSkills(ctx context.Context, caller drawbridge.Caller, m *member) (*catalogue, error) {
	ctx, cancel := context.WithTimeout(ctx, skillTime)
	defer cancel()
	c := &catalogue{member: m, said: true, hint: drawbridge.Hint{TTL: maxSkillAge, Public: true}}
	call := drawbridge.Call{Caller: caller, Method: wire.MethodSkillsList}
	spec := drawbridge.Spec{
		Name: drawbridge.CardName(m.ID), Server: m.ID, Tool: wire.MethodSkillsList, Scopes: m.scopes,
	}
	if err := d.allow(ctx, call, spec); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	size := 0
	for pages := 0; ; pages++ {
		result, err := d.up.Do(ctx, m.ID, call)
		if err != nil {
			return nil, err
		}
		if kind := wire.GetText(result.Raw, "resultType"); kind != "" && kind != "complete" {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError,
				Step: fmt.Sprintf("list the skills of %s", m.ID), Err: fmt.Errorf("the result is %q", clip(kind)),
			}
		}
		size += len(result.Raw)
		c.add(result.Raw)
		cursor := wire.Get(result.Raw, "nextCursor")
		text, ok := wire.Text(cursor)
		switch {
		case !ok:
			return c, nil
		case seen[text] || pages+1 == maxSkillPages || len(c.skills) >= maxSkills || size > maxSkillBytes:
			c.leftOut = append(c.leftOut, LeftOut{"skill", "", "the server's list of skills has no end"})
			d.log.Warn("a list of skills is cut", "server", m.ID, "skills", len(c.skills))
			return c, nil
		}
		seen[text] = true
		call.Params = wire.Apply(nil, wire.Put(cursor, "cursor"))
	}
}

// A skill is an entry as its server sent it.
type skill struct {
	// uri is that of its SKILL.md; root its directory, empty where the URI is not made as it should be.
	uri, root string
	raw       json.RawMessage
}

// readSkill reads an entry. The reason is why it cannot be on the deck.
func readSkill(raw json.RawMessage) (s skill, reason string) {
	uri, ok := wire.Text(wire.Get(raw, "uri"))
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return skill{}, "it is no object"
	case !ok || uri == "":
		return skill{}, "it has no uri"
	case len(uri) > naming.MaxURI || strings.Count(uri, "/") > maxDepth:
		return skill{uri: clip(uri)}, "its uri is too long"
	}
	return skill{uri, rootOf(uri), raw}, ""
}

// rootOf is the directory of a SKILL.md: what its URI has before "/SKILL.md"; empty for other URIs.
func rootOf(uri string) string {
	root, ok := strings.CutSuffix(uri, "/SKILL.md")
	if _, rest, hierarchical := naming.CutScheme(root); !ok || !hierarchical || rest == "" {
		return ""
	}
	return root
}

// space is what of all URIs belongs to the skill: its root and all below, or the one URI that it has.
func (s skill) space() string {
	if s.root != "" {
		return s.root
	}
	return s.uri
}

// qualified is the entry with its server in every URI.
func (s skill) qualified(server drawbridge.ServerID) json.RawMessage {
	return skillURIs(s.raw, func(uri string) string { return naming.InAuthority(server, uri) })
}

// skillURIs changes the URIs of an entry: its own and those of its files.
func skillURIs(entry json.RawMessage, public func(uri string) string) json.RawMessage {
	return eachURI(changeURI(entry, public, "uri"), "resources", public)
}

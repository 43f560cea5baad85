package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/deck/params"
	"github.com/drawbridge-mcp/drawbridge/deck/skill"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A server with skills (extension io.modelcontextprotocol/skills, SEP-2640) lists them by "skills/list", gives one by
// "skills/get", and serves their files as resources; with "directoryRead" it lists directories as well. There is no notice
// that its skills have changed, only a time that a list may be kept, so the deck does not enrol skills: it asks for them
// when a caller does, as that caller. Whose skill is whose, package skill says.

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
	p, err := params.Read(call.Method, call.Params)
	if err != nil {
		return drawbridge.Result{}, err
	}
	t, err := d.findResource(ctx, call.Caller, p.Name)
	if err != nil {
		return drawbridge.Result{}, unknown(wordOf(call.Method), p.Name)
	}
	if m := d.view.Load().member(t.spec.Server); m == nil || !can(m) {
		return drawbridge.Result{}, unknown(wordOf(call.Method), p.Name)
	}
	return d.carry(ctx, call, t.rewritten(p.Name, "uri"), p)
}

// able gives the servers that the caller may know of and that can do something. Before it says that there is none it waits
// for servers that are about to appear.
func (d *Deck) able(ctx context.Context, caller drawbridge.Caller, can func(*member) bool) []*member {
	look := func() (out []*member) {
		v := d.view.Load()
		for _, m := range v.members {
			if can(m) && v.knows(caller, m) {
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

// school is the member as one that has skills.
func (m *member) school() skill.Server { return skill.Server{ID: m.ID, Row: m.Row, Listing: m.listing} }

// groundOf says whose resources are listed where.
func (v *view) groundOf() *skill.Ground {
	return skill.NewGround(func(add func(string, drawbridge.ServerID)) {
		for _, items := range [][]*item{v.resources.items, v.resources.claimed} {
			for _, it := range items {
				add(string(it.spec.Name), it.spec.Server)
			}
		}
	})
}

// skillNotes gives what people are to know of a server's skills.
func (d *Deck) skillNotes(id drawbridge.ServerID) (clashes []Clash, leftOut []LeftOut) {
	notes := d.skills.Notes(id)
	for _, c := range notes.Clashes {
		clashes = append(clashes, Clash{Kind: "skill", Name: c.URI, Winner: c.Winner, Tool: c.URI, Listed: c.Listed})
	}
	for _, l := range notes.LeftOut {
		leftOut = append(leftOut, LeftOut{Kind: "skill", Name: l.URI, Reason: l.Reason})
	}
	return clashes, leftOut
}

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
	whole := true
	var groups []group
	v := d.view.Load()
	for _, m := range v.members {
		known := v.knows(caller, m)
		whole = whole && known
		if m.listing == nil && known {
			groups = append(groups, group{hint: &drawbridge.Hint{}}) // it may have skills too
		}
	}
	for _, hint := range s.Hints(d.now()) {
		groups = append(groups, group{hint: &hint})
	}
	list := List{Items: s.Items, Hint: hintOf(groups, whole), Version: s.Version}
	if v.gate.Screens() {
		list.Items, list.Hint.Public = v.screened(caller, s), false
		list.Version = v.gate.Version(caller, s.Version, v.tools.whole.Version)
	}
	return list, nil
}

// screened gives the skills that are not hidden from the caller, without what of them is.
func (v *view) screened(caller drawbridge.Caller, s *skill.Set) (items []json.RawMessage) {
	for _, item := range s.Items {
		uri := wire.GetText(item, "uri")
		owner := s.Owner(uri)
		if named, _, ok := label.CutServer(uri); ok {
			owner = named
		}
		m := v.member(owner)
		hidden := func(uri string) bool { return m != nil && v.conceal(caller, m, uri, label.Own(m.ID, uri)) }
		if !hidden(uri) {
			items = append(items, label.Without(item, hidden, "resources"))
		}
	}
	return items
}

// skillOwner finds the server in whose skills the URI lies.
func (d *Deck) skillOwner(ctx context.Context, v *view, caller drawbridge.Caller, uri string) (target, bool) {
	var members []*member
	others := 0
	for _, m := range v.members {
		switch {
		case !v.knows(caller, m):
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
	if m := v.member(s.Owner(uri)); m != nil {
		return v.shown(caller, m.unlisted(uri, uri))
	}
	return target{}, false
}

// probeSkill asks the servers with skills, in their order, for one that none of them lists: a list may leave out any. Each
// is asked as it would be if it were the only one.
func (d *Deck) probeSkill(ctx context.Context, caller drawbridge.Caller, uri string) (target, bool) {
	if !skill.IsSkill(uri) {
		return target{}, false
	}
	for _, m := range d.able(ctx, caller, hasSkills) {
		t := m.unlisted(uri, uri)
		call := drawbridge.Call{Caller: caller, Method: wire.MethodSkillsGet, Params: wire.Apply(nil, wire.Put(wire.Quote(uri), "uri"))}
		inner, entry := d.trail.Enter(ctx, call)
		result, err := d.carry(inner, call, t, params.Params{Name: uri})
		if entry.Leave(result, err) != nil {
			continue
		}
		if entry, reason := skill.Read(wire.Get(result.Raw, "skill")); reason == "" && entry.URI == uri {
			d.skills.Found(caller.Principal, m.school(), entry)
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
	// routeAge is how long a URI is looked up in what a server said, whatever it allows.
	routeAge = time.Minute
)

// skillsOf gives the skills of servers as the principal of the caller may see them: of those that were asked longer ago than
// age, or than they allow where age is 0, newly asked. The error is that of the first server where none ever answered.
func (d *Deck) skillsOf(ctx context.Context, caller drawbridge.Caller, members []*member, age time.Duration) (*skill.Set, error) {
	catalogues := make([]*skill.Catalogue, 0, len(members))
	var refusal error
	answered := false
	for _, m := range members {
		c := d.skills.Get(caller.Principal, m.school())
		if c == nil || !c.Fresh(m.school(), d.now(), age) {
			asked, err := d.fetchSkills(ctx, caller, m)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c = c.Renewed(asked, err, m.school(), d.now())
			d.skills.Put(caller.Principal, c)
		}
		answered = answered || c.Said()
		if refusal == nil {
			refusal = c.Refusal()
		}
		catalogues = append(catalogues, c)
	}
	if !answered {
		return nil, refusal
	}
	s, lost := d.skills.Together(caller.Principal, d.view.Load().ground, catalogues, d.maker.naming, d.version)
	for _, l := range lost {
		d.log.Warn("a server has a skill where another has something", "server", l.Server, "winner", l.Winner,
			"first", l.URI, "listed", l.Listed)
	}
	return s, nil
}

// fetchSkills asks a server for its skills, page by page.
func (d *Deck) fetchSkills(ctx context.Context, caller drawbridge.Caller, m *member) (_ *skill.Catalogue, err error) {
	ctx, cancel := context.WithTimeout(ctx, skillTime)
	defer cancel()
	c := skill.Answer()
	call := drawbridge.Call{Caller: caller, Method: wire.MethodSkillsList}
	ctx, entry := d.trail.Enter(ctx, call)
	defer func() { err = entry.Leave(drawbridge.Result{}, err) }()
	spec := drawbridge.Spec{
		Name: drawbridge.CardName(m.ID), Server: m.ID, Tool: wire.MethodSkillsList, Scopes: m.scopes,
	}
	if err := d.allow(ctx, call, "", spec); err != nil {
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
		if result.Raw, err = d.vetSkills(ctx, m.ID, result.Raw); err != nil {
			return nil, err
		}
		size += len(result.Raw)
		c.Add(result.Raw)
		cursor := wire.Get(result.Raw, "nextCursor")
		text, ok := wire.Text(cursor)
		switch {
		case !ok:
			return c, nil
		case seen[text] || pages+1 == maxSkillPages || c.Len() >= maxSkills || size > maxSkillBytes:
			c.Cut()
			d.log.Warn("a list of skills is cut", "server", m.ID, "skills", c.Len())
			return c, nil
		}
		seen[text] = true
		call.Params = wire.Apply(nil, wire.Put(cursor, "cursor"))
	}
}

// Directories and skills name resources: what is hidden from a caller is not named to them there either.

// unveiled gives the answer about a directory or a skill, as its server sent it, without what is hidden from the caller.
func (d *Deck) unveiled(caller drawbridge.Caller, method string, t target, result json.RawMessage) json.RawMessage {
	v := d.view.Load()
	m := v.member(t.spec.Server)
	if m == nil || !v.gate.Screens() || method != wire.MethodDirectoryRead && method != wire.MethodSkillsGet {
		return result
	}
	hidden := func(own string) bool { return v.conceal(caller, m, t.uri(own), own) }
	if method == wire.MethodSkillsGet {
		return label.Without(result, hidden, "skill", "resources")
	}
	return label.Without(result, hidden, "resources")
}

// conceal says whether a resource of the member is hidden from the caller, who knows it as uri.
func (v *view) conceal(caller drawbridge.Caller, m *member, uri, own string) bool {
	if it := v.resources.ownedBy(m.ID, own); it != nil {
		return !v.resources.shows(caller, it)
	}
	return v.hides(caller, m.unlisted(uri, own))
}

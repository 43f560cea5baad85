package deck

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A server with skills (extension io.modelcontextprotocol/skills, SEP-2640) lists them with "skills/list" and returns
// one skill with "skills/get". The files of a skill are resources of the server. If the extension's settings have
// "directoryRead", the server also lists directories with "resources/directory/read". The server sends no notification
// when its skills change; a list of skills only has a cache time. So the deck does not enrol skills. When a caller
// requests skills, the deck requests them from the servers on behalf of this caller. A skillSet decides which
// server owns a skill. The answers are not trusted, and their sizes are limited.

// resolveSkill sets s.target for skills/get and resources/directory/read. For any other method, and if no visible
// server supports the method, it returns the fault for an unknown method. skills/list is handled by [Deck.List].
func (d *Deck) resolveSkill(ctx context.Context, s *callState) error {
	can := hasSkills
	switch s.call.Method {
	case mcp.MethodSkillsGet:
	case mcp.MethodDirectoryRead:
		can = func(m *serverState) bool { return m.directories }
	default:
		return methodNotFoundFault(s.call.Method)
	}
	if len(d.serversWith(ctx, s.call.Caller, can)) == 0 {
		return methodNotFoundFault(s.call.Method)
	}
	p, err := ReadParams(s.call.Method, s.call.Params)
	if err != nil {
		return err
	}
	t, err := d.findResource(ctx, s.log, s.call.Caller, p.Name)
	if err != nil {
		return unknownNameFault(methodSubject(s.call.Method), p.Name)
	}
	if m := d.view.Load().server(t.spec.Server); m == nil || !can(m) {
		return unknownNameFault(methodSubject(s.call.Method), p.Name)
	}
	s.params, s.target = p, t.withOwnName(p.Name, "uri")
	return nil
}

// serversWith returns the visible servers for which can returns true. If there is none, it waits for servers that are
// starting, and searches again.
func (d *Deck) serversWith(ctx context.Context, caller drawbridge.Caller, can func(*serverState) bool) []*serverState {
	look := func() (out []*serverState) {
		v := d.view.Load()
		for _, m := range v.servers {
			if can(m) && v.mayKnowServer(caller, m) {
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

func hasSkills(m *serverState) bool { return m.skills }

// skillServer returns the identity of the server and the state on which its skills depend.
func (m *serverState) skillServer() skillServer {
	return skillServer{id: m.ID, row: m.ConfigHash, listing: m.listing}
}

// newResourceTree returns a tree of the servers by the public URIs of their listed and claimed resources.
func (v *view) newResourceTree() *resourceTree {
	return newResourceTree(func(add func(string, drawbridge.ServerID)) {
		for _, items := range [][]*item{v.resources.items, v.resources.claimed} {
			for _, it := range items {
				add(string(it.spec.Name), it.spec.Server)
			}
		}
	})
}

// skillProblems returns the clashes of a server's skills with items of other servers, and the skills that are not
// shown.
func (d *Deck) skillProblems(id drawbridge.ServerID) (clashes []NameClash, leftOut []OmittedItem) {
	notes := d.skills.problemsOf(id)
	for _, c := range notes.clashes {
		clashes = append(clashes, NameClash{Kind: "skill", Name: c.uri, Winner: c.winner, Tool: c.uri,
			Listed: c.listed})
	}
	for _, l := range notes.omitted {
		leftOut = append(leftOut, OmittedItem{Kind: "skill", Name: l.uri, Reason: l.reason})
	}
	return clashes, leftOut
}

// listSkills returns the result of skills/list. For a server that fails, it uses the skills of the server's last
// successful answer. It returns an error if no visible server has skills, or if none of them has ever answered.
func (d *Deck) listSkills(ctx context.Context, caller drawbridge.Caller) (List, error) {
	members := d.serversWith(ctx, caller, hasSkills)
	if len(members) == 0 {
		return List{}, methodNotFoundFault(mcp.MethodSkillsList)
	}
	s, err := d.collectSkills(ctx, caller, members, 0)
	if err != nil {
		return List{}, err
	}
	whole := true
	var groups []itemGroup
	v := d.view.Load()
	for _, m := range v.servers {
		known := v.mayKnowServer(caller, m)
		whole = whole && known
		if m.listing == nil && known {
			groups = append(groups, itemGroup{hint: &drawbridge.CacheHint{}}) // it may have skills
		}
	}
	for _, hint := range s.cacheHints(d.now()) {
		groups = append(groups, itemGroup{hint: &hint})
	}
	list := List{Items: s.items, CacheHint: combinedHint(groups, whole), Version: s.version}
	if v.guards.hidesAnything() {
		list.Items, list.CacheHint.Public = v.visibleSkills(caller, s), false
		list.Version = v.guards.listVersion(caller, s.version, v.tools.fullList.Version)
	}
	return list, nil
}

// SkillServer returns the server that offers the skill with a listed URI. It returns "" if none does.
func (d *Deck) SkillServer(ctx context.Context, caller drawbridge.Caller, uri string) drawbridge.ServerID {
	if server, _, ok := naming.CutServer(uri); ok {
		return server
	}
	s, err := d.collectSkills(ctx, caller, d.serversWith(ctx, caller, hasSkills), maxRouteAge)
	if err != nil {
		return ""
	}
	return s.owner(uri)
}

// visibleSkills returns the skills in s that are visible to the caller. Resources that are hidden from the caller are
// removed from them.
func (v *view) visibleSkills(caller drawbridge.Caller, s *skillSet) (items []json.RawMessage) {
	for _, item := range s.items {
		uri := rawjson.GetString(item, "uri")
		owner := s.owner(uri)
		if named, _, ok := naming.CutServer(uri); ok {
			owner = named
		}
		m := v.server(owner)
		hidden := func(uri string) bool { return m != nil && v.hidesResource(caller, m, uri, naming.OwnURI(m.ID, uri)) }
		if !hidden(uri) {
			items = append(items, naming.RemoveHidden(item, hidden, "resources"))
		}
	}
	return items
}

// findSkillOwner returns the call target for a URI that belongs to a skill in the servers' lists of skills. It returns
// false if no skill contains the URI. It also returns false if at most one visible server has skills or resources,
// because then the owner is known without the lists.
func (d *Deck) findSkillOwner(ctx context.Context, v *view, caller drawbridge.Caller, uri string) (callTarget, bool) {
	var members []*serverState
	others := 0
	for _, m := range v.servers {
		switch {
		case !v.mayKnowServer(caller, m):
		case m.skills:
			members = append(members, m)
		case m.hasResources():
			others++
		}
	}
	if len(members)+others < 2 || len(members) == 0 {
		return callTarget{}, false // the owner is known without the skills
	}
	s, err := d.collectSkills(ctx, caller, members, maxRouteAge)
	if err != nil {
		return callTarget{}, false
	}
	if m := v.server(s.owner(uri)); m != nil {
		return v.ifVisible(caller, m.unlistedResource(uri, uri))
	}
	return callTarget{}, false
}

// probeSkill searches for a skill that is in no list of skills, because such lists may be incomplete. It sends
// skills/get to each visible server with skills, one after another, and returns the call target at the first server
// that has the skill. The guards decide on each of these requests, and the audit records it.
func (d *Deck) probeSkill(ctx context.Context, caller drawbridge.Caller, uri string) (callTarget, bool) {
	if !isSkillURI(uri) {
		return callTarget{}, false
	}
	for _, m := range d.serversWith(ctx, caller, hasSkills) {
		t := m.unlistedResource(uri, uri)
		call := drawbridge.Call{Caller: caller, Method: mcp.MethodSkillsGet, Params: rawjson.Apply(nil,
			rawjson.Put(rawjson.Quote(uri), "uri"))}
		inner, entry := d.callLog.Begin(ctx, call)
		s := &callState{call: call, log: entry, target: t, params: callParams{Name: uri}}
		err := d.runCall(inner, s)
		if entry.End(s.result, err) != nil {
			continue
		}
		if entry, reason := parseSkill(rawjson.Get(s.result.Raw, "skill")); reason == "" && entry.uri == uri {
			d.skills.addUnlisted(caller.Principal, m.skillServer(), entry)
			return t, true
		}
	}
	return callTarget{}, false
}

// The limits for one server's list of skills: its pages, its skills and its size in bytes. A longer list is truncated.
const (
	maxSkillPages = 100
	maxSkills     = 10_000
	maxSkillBytes = 16 << 20
	// skillListTimeout is the maximum time for fetching one server's list of skills.
	skillListTimeout = 10 * time.Second
	// maxRouteAge is the maximum age of the lists of skills that findSkillOwner uses. It replaces the cache time that
	// the servers sent.
	maxRouteAge = time.Minute
)

// collectSkills returns the skills of these servers, as the servers list them for the caller's principal. Lists are
// cached. A list is requested again if it is older than age, or, if age is 0, older than the cache time that the server
// sent. If no server has ever answered, collectSkills returns the first server's error.
func (d *Deck) collectSkills(ctx context.Context, caller drawbridge.Caller, members []*serverState,
	age time.Duration) (*skillSet, error) {
	catalogues := make([]*serverSkills, 0, len(members))
	var refusal error
	answered := false
	for _, m := range members {
		c := d.skills.get(caller.Principal, m.skillServer())
		if c == nil || !c.isFresh(m.skillServer(), d.now(), age) {
			asked, err := d.fetchSkills(ctx, caller, m)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			c = c.refreshed(asked, err, m.skillServer(), d.now())
			d.skills.put(caller.Principal, c)
		}
		answered = answered || c.answered
		if refusal == nil {
			refusal = c.lastErr
		}
		catalogues = append(catalogues, c)
	}
	if !answered {
		return nil, refusal
	}
	s, lost := d.skills.combine(caller.Principal, d.view.Load().resourceTree, catalogues, d.maker.naming, d.nextVersion)
	for _, l := range lost {
		d.log.Warn("skill clashes with an item of another server", "server", l.server, "winner", l.winner,
			"first", l.uri, "listed", l.listed)
	}
	return s, nil
}

// fetchSkills requests a server's list of skills, page by page. A list that exceeds a limit is truncated and marked as
// truncated.
func (d *Deck) fetchSkills(ctx context.Context, caller drawbridge.Caller, m *serverState) (_ *serverSkills,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, skillListTimeout)
	defer cancel()
	c := newServerSkills()
	call := drawbridge.Call{Caller: caller, Method: mcp.MethodSkillsList}
	ctx, entry := d.callLog.Begin(ctx, call)
	defer func() { err = entry.End(drawbridge.Result{}, err) }()
	spec := drawbridge.Spec{
		Name: drawbridge.CardName(m.ID), Server: m.ID, Tool: mcp.MethodSkillsList, Scopes: m.scopes,
	}
	if err := d.authorizeCall(ctx, entry, call, "", spec); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	size := 0
	for pages := 0; ; pages++ {
		result, err := d.upstream.Do(ctx, m.ID, call)
		if err != nil {
			return nil, err
		}
		if kind := rawjson.GetString(result.Raw, "resultType"); kind != "" && kind != "complete" {
			return nil, &drawbridge.Fault{
				Kind: drawbridge.BridgeFault, Code: drawbridge.ServerError,
				Step: fmt.Sprintf("list the skills of %s", m.ID), Err: fmt.Errorf("unexpected result type %q",
					clipText(kind)),
			}
		}
		if result.Raw, err = d.vetSkills(ctx, m.ID, result.Raw); err != nil {
			return nil, err
		}
		size += len(result.Raw)
		c.addPage(result.Raw)
		cursor := rawjson.Get(result.Raw, "nextCursor")
		text, ok := rawjson.DecodeString(cursor)
		switch {
		case !ok:
			return c, nil
		case seen[text] || pages+1 == maxSkillPages || len(c.skills) >= maxSkills || size > maxSkillBytes:
			c.markTruncated()
			d.log.Warn("list of skills truncated", "server", m.ID, "skills", len(c.skills))
			return c, nil
		}
		seen[text] = true
		call.Params = rawjson.Apply(nil, rawjson.Put(cursor, "cursor"))
	}
}

// The results of resources/directory/read and skills/get contain lists of resources. Resources that are hidden from the
// caller must be removed from these lists.

// hideResources returns the result of a call without the resources that are hidden from the caller. It changes only
// results of resources/directory/read and skills/get. The URIs in the result must be the server's own.
func (d *Deck) hideResources(caller drawbridge.Caller, method string, t callTarget,
	result json.RawMessage) json.RawMessage {
	v := d.view.Load()
	m := v.server(t.spec.Server)
	if m == nil || !v.guards.hidesAnything() || method != mcp.MethodDirectoryRead && method != mcp.MethodSkillsGet {
		return result
	}
	hidden := func(own string) bool { return v.hidesResource(caller, m, t.callerURI(own), own) }
	if method == mcp.MethodSkillsGet {
		return naming.RemoveHidden(result, hidden, "skill", "resources")
	}
	return naming.RemoveHidden(result, hidden, "resources")
}

// hidesResource reports whether a resource of the server is hidden from the caller. uri is the URI that the caller
// uses, and own is the server's own URI.
func (v *view) hidesResource(caller drawbridge.Caller, m *serverState, uri, own string) bool {
	if it := v.resources.findByOwnName(m.ID, own); it != nil {
		return !v.resources.visibleTo(caller, it)
	}
	return v.hidesTarget(caller, m.unlistedResource(uri, own))
}

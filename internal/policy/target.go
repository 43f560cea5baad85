package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ruleTarget is an item that can be called, as rules see it. It is not changed after its creation.
type ruleTarget struct {
	// These identify it, as they were given. word is the trust level.
	kind, tool, word string
	id               drawbridge.ServerID
	name             drawbridge.CardName

	server, trust string
	// nameKnown reports that the name is known; names are all its names.
	nameKnown bool
	names     []string
	// also are names that some parsers take it for: an allowing rule need not match them.
	also []string

	// cached reports that it is in the cache, with rules and hidden set. next is another target of the same name.
	cached bool
	next   *ruleTarget
	// rules are the indices of the rules that may match it.
	rules []int
	// hidden decides whether it is listed, if that is the same for every caller; otherwise nil.
	hidden *Decision
}

// maxCachedTargets bounds the cache.
const maxCachedTargets = 4096

// A targetCache holds cards and prompts by name. Their number is that of listed items.
type targetCache struct {
	mu    sync.RWMutex
	all   map[drawbridge.CardName]*ruleTarget
	count int
}

// find returns the cached target, or nil.
func (t *targetCache) find(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	t.mu.RLock()
	one := t.all[spec.Name]
	t.mu.RUnlock()
	for one != nil && (one.tool != spec.Tool || one.id != spec.Server || one.word != trust || one.kind != kind) {
		one = one.next
	}
	return one
}

// add caches a target.
func (t *targetCache) add(one *ruleTarget) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil || t.count >= maxCachedTargets {
		t.all, t.count = map[drawbridge.CardName]*ruleTarget{}, 0
	}
	one.next = t.all[one.name]
	t.all[one.name] = one
	t.count++
}

// targetFor returns the target for an item. Cards and prompts are cached; of other items there may be any number.
func (p *Policy) targetFor(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	if kind != KindTool && kind != KindPrompt {
		return newTarget(kind, spec, trust)
	}
	t := p.targets.find(kind, spec, trust)
	if t == nil {
		t = newTarget(kind, spec, trust)
		p.findRelevantRules(t)
		p.targets.add(t)
	}
	return t
}

// newTarget returns a target with all names by which rules know it.
func newTarget(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	t := &ruleTarget{
		kind: kind, tool: spec.Tool, word: trust, id: spec.Server, name: spec.Name,
		server: foldLabel(string(spec.Server)), trust: foldLabel(trust),
	}
	if t.server == "" {
		t.server, t.trust = string(drawbridge.OwnServer), "trusted"
	}
	switch kind {
	case KindTool, KindPrompt:
		t.addServerNames(foldLabel(spec.Tool), foldLabel(string(spec.Name)))
	case KindResource, KindTemplate:
		t.addNames(foldLabel(spec.Tool), foldLabel(string(spec.Name)))
		t.knowURI(spec.Tool)
		if isFileURI(spec.Tool) {
			for _, path := range pathReadings(spec.Tool, "") {
				t.addNames(foldLabel("file://" + path))
			}
		}
	}
	return t
}

// knowURI adds the URIs that parsers take a URI for.
func (t *ruleTarget) knowURI(uri string) {
	same, also := uriReadings(uri)
	for _, one := range same {
		if one = foldLabel(one); !slices.Contains(t.names, one) {
			t.addNames(one)
		}
	}
	for _, one := range also {
		if one = foldLabel(one); !slices.Contains(t.names, one) && !slices.Contains(t.also, one) {
			t.also = append(t.also, one)
		}
	}
}

// addServerNames adds the server's own name and the listed name. If invisible characters were removed from a name, both
// spellings count.
func (t *ruleTarget) addServerNames(own, listed string) {
	t.addNames(own, t.server+":"+own, listed)
	bare, qualified := strings.CutPrefix(listed, t.server+drawbridge.NameSeparator)
	if !qualified || bare != own {
		t.addNames(t.server+drawbridge.NameSeparator+own, bare, t.server+":"+bare)
	}
}

func (t *ruleTarget) addNames(names ...string) {
	t.nameKnown, t.names = true, append(t.names, names...)
}

// findRelevantRules finds the rules that may match, and whether they hide the target from every caller or none.
func (p *Policy) findRelevantRules(t *ruleTarget) {
	s := ruleSubject{ruleTarget: t, method: MethodOf(t.kind)}
	alike := true
	for i, r := range p.rules {
		if r.serverMismatch(&s) == "" && r.matchName(&s) != matchNo {
			t.rules = append(t.rules, i)
			// Rules that use arguments are not evaluated here. A definition may change, so nothing that depends on it
			// is cached.
			alike = alike && !r.looksAtCaller() && (r.when == nil || r.when.mentions.args)
		}
	}
	if t.cached = true; alike {
		hidden := p.firstDecision(&s, nil)
		t.hidden = &hidden
	}
}

package policy

import (
	"slices"
	"strings"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
)

// A ruleTarget is an item that a caller can use, with the properties that rules compare. It is immutable.
type ruleTarget struct {
	// These fields identify the item in the cache, as spelled in the request. word is the trust level.
	kind, tool, word string
	id               drawbridge.ServerID
	name             drawbridge.CardName

	server, trust string
	// nameKnown reports whether the item's name is known. names are all names of the item.
	nameKnown bool
	names     []string
	// also are names that only careless parsers read. A rule that allows can match the item without matching them.
	also []string

	// cached reports whether the target is in the cache; if so, rules is set. next is another target in the cache with
	// the same name; nil if there is none.
	cached bool
	next   *ruleTarget
	// rules are the indices of the rules that may match the target, in order.
	rules []int
	// hidden is the decision of HiddenDecision, if it is the same for every caller; otherwise nil.
	hidden *Decision
}

// maxCachedTargets is the maximum number of targets in the cache.
const maxCachedTargets = 4096

// A targetCache caches the targets of tools and prompts by name.
type targetCache struct {
	mu    sync.RWMutex
	all   map[drawbridge.CardName]*ruleTarget
	count int
}

// find returns the cached target of an item; nil if the item is not in the cache.
func (t *targetCache) find(kind string, spec *drawbridge.Spec, trust string) *ruleTarget {
	t.mu.RLock()
	one := t.all[spec.Name]
	t.mu.RUnlock()
	for one != nil && (one.tool != spec.Tool || one.id != spec.Server || one.word != trust || one.kind != kind) {
		one = one.next
	}
	return one
}

// add adds a target to the cache. If the cache is full, add empties it first.
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

// targetFor returns the target for an item. Targets of tools and prompts are cached. Targets of other items are not
// cached, because there may be any number of them.
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

// newTarget returns a target that has all names by which rules can match the item.
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

// knowURI adds the URIs that parsers may read from a URI to the target's names.
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

// addServerNames adds the name that the server uses and the name in Drawbridge's list. The two names differ in spelling
// if invisible characters were removed; then both spellings are added.
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

// findRelevantRules sets rules to the rules that may match the target. It sets hidden if the decision is the same for
// every caller.
func (p *Policy) findRelevantRules(t *ruleTarget) {
	s := ruleSubject{ruleTarget: t, method: MethodOf(t.kind)}
	alike := true
	for i, r := range p.rules {
		if r.serverMismatch(&s) == "" && r.matchName(&s) != matchNo {
			t.rules = append(t.rules, i)
			// An expression that uses arguments is not evaluated without a call. Any other expression may use the
			// caller or the definition, which may change, so its result must not be cached.
			alike = alike && !r.looksAtCaller() && (r.when == nil || r.when.mentions.args)
		}
	}
	if t.cached = true; alike {
		hidden := p.firstDecision(&s, nil)
		t.hidden = &hidden
	}
}

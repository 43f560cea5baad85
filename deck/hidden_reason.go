package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// hiddenReason returns, for the audit only, why a name is hidden from its caller. For a name that does not exist, it
// returns the zero verdict. In this case it asks the guards about another item, so that both cases take the same time.
func (v *view) hiddenReason(caller drawbridge.Caller, k itemKind, name string) drawbridge.Verdict {
	it := v.findHidden(k, name)
	judged := it
	if others := v.indexForMethod(k.list).items; it == nil && len(others) > 0 {
		judged = others[len(name)%len(others)]
	} else if it == nil {
		judged = &item{kind: k.word, spec: drawbridge.Spec{Name: drawbridge.CardName(name)}}
	}
	why := v.guards.hideReason(caller, judged.kind, judged.spec)
	if it == nil {
		return drawbridge.Verdict{}
	}
	return why
}

// findHidden returns the item with a name, even if it is hidden; nil if no item has the name.
func (v *view) findHidden(k itemKind, name string) *item {
	s := v.indexForMethod(k.list)
	it := s.byName[name]
	if k != resources {
		if others := s.byAlias()[name]; it == nil && len(others) > 0 {
			return others[0]
		}
		return it
	}
	for _, t := range v.templates.items {
		if matches := string(t.spec.Name) == name || t.template != nil &&
			t.template.Matches(name); matches && it == nil {
			it = t
		}
	}
	server, own, ok := naming.CutServer(name)
	if m := v.byID[server]; ok && m != nil && it == nil {
		t := m.unlistedResource(name, own)
		return &item{kind: t.kind, spec: t.spec}
	}
	return it
}

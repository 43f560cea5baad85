package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// hiddenReason returns a verdict that explains, for the audit only, why the item with this name is hidden from the
// caller. If no item has the name, it returns the zero verdict. It then asks the guards about another item, so that a
// hidden name and an unknown name take the same time.
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

// findHidden returns the item that a caller could mean by a name or URI, without a check of whether the item is
// visible. It returns nil if no item has the name.
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

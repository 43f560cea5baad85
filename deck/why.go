package deck

import (
	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
)

// why says, for the record alone, why a name is not there for its caller: the zero verdict where nobody has it. That takes as
// long: another item is judged in the place of the one that there is not.
func (v *view) why(caller drawbridge.Caller, k kind, name string) drawbridge.Verdict {
	it := v.veiled(k, name)
	judged := it
	if others := v.byMethod(k.list).items; it == nil && len(others) > 0 {
		judged = others[len(name)%len(others)]
	} else if it == nil {
		judged = &item{kind: k.word, spec: drawbridge.Spec{Name: drawbridge.CardName(name)}}
	}
	why := v.gate.Why(caller, judged.kind, judged.spec)
	if it == nil {
		return drawbridge.Verdict{}
	}
	return why
}

// veiled gives what a name stands for, whoever may know of it; nil where it stands for nothing.
func (v *view) veiled(k kind, name string) *item {
	s := v.byMethod(k.list)
	it := s.byName[name]
	if k != resources {
		if others := s.byAlias()[name]; it == nil && len(others) > 0 {
			return others[0]
		}
		return it
	}
	for _, t := range v.templates.items {
		if matches := string(t.spec.Name) == name || t.template != nil && t.template.Match(name); matches && it == nil {
			it = t
		}
	}
	server, own, ok := label.CutServer(name)
	if m := v.byID[server]; ok && m != nil && it == nil {
		t := m.unlisted(name, own)
		return &item{kind: t.kind, spec: t.spec}
	}
	return it
}

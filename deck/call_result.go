package deck

import (
	"context"
	"encoding/json"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// vetSkillEntry applies the skill filter of the deck to the result of skills/get. It does nothing for other methods.
func (d *Deck) vetSkillEntry(ctx context.Context, s *callState) (err error) {
	if s.call.Method != mcp.MethodSkillsGet {
		return nil
	}
	s.result.Raw, err = d.vetSkills(ctx, s.target.spec.Server, s.result.Raw)
	return s.filter.ApplyToError(ctx, err)
}

// restoreNames replaces the server's own task IDs, URIs and links in the result with the public ones. It also removes
// resources that are hidden from the caller.
func (d *Deck) restoreNames(_ context.Context, s *callState) (err error) {
	if s.tasks != nil && s.call.Method == mcp.MethodToolsCall {
		if s.result, err = s.tasks.translateCreatedTask(s.result, s.taskRequested); err != nil {
			return err
		}
	}
	caller, method := s.call.Caller, s.call.Method
	raw := d.hideResources(caller, method, s.target, s.result.Raw)
	raw = s.target.restoreURIs(method, raw)
	s.result.Raw = d.rewriteLinks(caller, method, s.target.spec.Server, raw)
	return nil
}

// guardResult applies the filter of the call to the result. The filter leaves the result unchanged, marks its texts as
// foreign, or withholds the result. For a withheld result, guardResult returns a *[drawbridge.Fault], and the caller
// gets no result. From a result that is not withheld the deck may learn the output type of the tool.
func (d *Deck) guardResult(ctx context.Context, s *callState) (err error) {
	filter := s.filter
	if s.result.Foreign && (s.target.card != nil || s.target.ownTask) {
		yes := true
		filter = d.resultGuard.FilterFor(s.call, drawbridge.OwnServer, string(s.target.spec.Name), s.target.filterName(),
			ResultTreatment{Mark: &yes, Scan: d.scanForeignCards})
	}
	result := s.result.Raw
	if s.result.Raw, err = filter.Apply(ctx, result); err == nil {
		d.learnOutput(s, result)
	}
	return err
}

// sealState replaces the request state in the result with a sealed state. A server sends a request state if it needs
// input from the caller before it can complete the call.
func (d *Deck) sealState(_ context.Context, s *callState) error {
	s.result.Raw = d.sealer.sealResultState(s.result.Raw, s.binding)
	return nil
}

// A ForeignCard is a card of Drawbridge that may return texts from other sources, such as web pages. Its results are
// marked and examined in the same way as the results of a server.
type ForeignCard interface {
	drawbridge.Card
	ReturnsForeignTexts() bool
}

// filterOf returns the filter that marks or withholds the result of a call.
func (d *Deck) filterOf(s *callState) ResultFilter {
	card, tool := string(s.target.spec.Name), s.target.filterName()
	if c, ok := s.target.card.(ForeignCard); s.target.ownTask || ok && c.ReturnsForeignTexts() {
		return d.resultGuard.FilterFor(s.call, drawbridge.OwnServer, card, tool, ResultTreatment{Scan: d.scanForeignCards})
	}
	return d.resultFilter(s.call, s.target.spec.Server, card, tool)
}

// resultFilter returns the filter for the result of a request to a server. It must be called before the request is
// sent, because a server's settings are lost if the server is removed during the request. For a server that is already
// removed, the filter is strict: it marks results, and withholds a result in which a rule matches. For an empty server,
// the filter changes nothing.
func (d *Deck) resultFilter(call drawbridge.Call, server drawbridge.ServerID, card,
	tool string) ResultFilter {
	switch m := d.view.Load().server(server); {
	case server == "":
		return ResultFilter{}
	case m != nil:
		return d.resultGuard.FilterFor(call, server, card, tool, ResultTreatment{Mark: m.Spotlight,
			Hold: m.HoldResults, Scan: m.ScanResults})
	}
	yes := true
	return d.resultGuard.FilterFor(call, server, card, tool, ResultTreatment{Mark: &yes, Hold: yes})
}

// filterName returns the name of the target that the result filter shows to people: the server's own name, or "task"
// for a task.
func (t *callTarget) filterName() string {
	if t.kind == taskKind {
		return taskKind
	}
	return t.ownName
}

// callerURI converts a server's own URI to the form of the URI in the caller's request. If the caller used a qualified
// URI, the result is qualified too.
func (t *callTarget) callerURI(own string) string {
	switch {
	case t.calledAs == "":
		return own
	case own == t.ownName:
		return t.calledAs
	}
	return naming.QualifyLike(t.spec.Server, t.calledAs, own)
}

// restoreURIs returns the result with its URIs converted by callerURI, so that the caller finds the requested URI in
// the result.
func (t *callTarget) restoreURIs(method string, result json.RawMessage) json.RawMessage {
	if t.calledAs == "" {
		return result
	}
	switch method {
	case mcp.MethodResourcesRead:
		return naming.MapURIs(result, "contents", t.callerURI)
	case mcp.MethodDirectoryRead:
		return naming.MapURIs(result, "resources", t.callerURI)
	case mcp.MethodSkillsGet:
		if entry := rawjson.Get(result, "skill"); entry != nil {
			return rawjson.Apply(result, rawjson.Put(mapSkillURIs(entry, t.callerURI), "skill"))
		}
	}
	return result
}

package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A ProvDocument is a W3C PROV document in the form of PROV-JSON (https://www.w3.org/submissions/prov-json/).
type ProvDocument struct {
	Prefix            map[string]string         `json:"prefix"`
	Entity            map[string]provAttributes `json:"entity"`
	Activity          map[string]provAttributes `json:"activity,omitempty"`
	Agent             map[string]provAttributes `json:"agent,omitempty"`
	WasDerivedFrom    map[string]provAttributes `json:"wasDerivedFrom,omitempty"`
	WasGeneratedBy    map[string]provAttributes `json:"wasGeneratedBy,omitempty"`
	WasAssociatedWith map[string]provAttributes `json:"wasAssociatedWith,omitempty"`
}

// provAttributes are the attributes of an element or a relation.
type provAttributes map[string]any

// set sets an attribute, unless it is empty.
func (a provAttributes) set(name, value string) {
	if value != "" {
		a[name] = value
	}
}

// WorkspaceProv returns a tree of sources as a PROV document. An entity is a content, an activity is the call that
// wrote it, and an agent is the principal of the call. The same tree has the same document.
func WorkspaceProv(why *workspace.Why) ProvDocument {
	d := ProvDocument{Prefix: map[string]string{"drawbridge": "urn:drawbridge:"}, Entity: map[string]provAttributes{},
		Activity: map[string]provAttributes{}, Agent: map[string]provAttributes{}, WasDerivedFrom: map[string]provAttributes{},
		WasGeneratedBy: map[string]provAttributes{}, WasAssociatedWith: map[string]provAttributes{}}
	d.add(why, "")
	return d
}

// add adds a node and its sources, and returns the identifier of its entity. statement is the statement above the node;
// empty without one. What a statement says has other identifiers than what is known.
func (d ProvDocument) add(node *workspace.Why, statement string) string {
	id := provEntityID(node, statement)
	attributes := d.Entity[id]
	if attributes == nil {
		attributes = provAttributes{}
		d.Entity[id] = attributes
	}
	attributes.set("prov:label", strings.TrimSpace(node.Kind+" "+node.Name))
	attributes.set("drawbridge:kind", node.Kind)
	attributes.set("drawbridge:server", node.Server)
	attributes.set("drawbridge:sha256", node.Digest)
	attributes.set("drawbridge:call", node.Call)
	if node.Kind == workspace.WebSource || node.Kind == workspace.FileSource {
		attributes.set("prov:location", node.Name)
	}
	if node.Written != nil {
		d.addWrite(id, statement, attributes, node.Written)
	}
	if node.Kind == workspace.Statement {
		statement = id
	}
	for _, source := range node.Sources {
		used := d.add(source, statement)
		d.WasDerivedFrom[provID("derivation", id, used)] = provAttributes{"prov:generatedEntity": id, "prov:usedEntity": used}
	}
	return id
}

// addWrite adds the call that wrote an entity, and its agent.
func (d ProvDocument) addWrite(entity, statement string, attributes provAttributes, w *workspace.Written) {
	attributes.set("drawbridge:revision", string(w.Revision))
	attributes.set("drawbridge:origin", string(w.Origin))
	activity := provID("write", statement, string(w.Revision), w.By)
	call := provAttributes{"prov:startTime": w.At.UTC().Format(time.RFC3339Nano)}
	call.set("prov:label", w.Tool)
	call.set("drawbridge:call", w.Call)
	call.set("drawbridge:thread", w.Thread)
	call.set("drawbridge:run", w.Run)
	d.Activity[activity] = call
	agent := provID("agent", statement, w.By, w.Actor)
	kind := "prov:SoftwareAgent"
	if w.Actor == "author" && !w.Script {
		kind = "prov:Person"
	}
	d.Agent[agent] = provAttributes{"prov:label": w.By, "prov:type": map[string]string{"$": kind, "type": "prov:QUALIFIED_NAME"}}
	d.WasGeneratedBy[provID("generation", entity, activity)] = provAttributes{"prov:entity": entity, "prov:activity": activity}
	d.WasAssociatedWith[provID("association", activity, agent)] = provAttributes{"prov:activity": activity, "prov:agent": agent}
}

// provEntityID returns the identifier of a node's entity: of its revision, or of its name and digest.
func provEntityID(node *workspace.Why, statement string) string {
	if node.Written != nil {
		return provID("entity", statement, string(node.ID), string(node.Written.Revision), node.Digest)
	}
	return provID("entity", statement, string(node.ID), node.Kind, node.Name, node.Server, node.Digest, node.Call)
}

// provID returns an identifier that is a qualified name for any texts.
func provID(kind string, of ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", of))
	return "drawbridge:" + kind + "-" + hex.EncodeToString(sum[:8])
}

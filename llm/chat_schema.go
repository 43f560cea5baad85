package llm

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

const (
	// maxSchemaDepth is the maximum depth of a normalised schema, and maxSchemaNodes the maximum number of schemas in it.
	// What lies beyond them accepts any value. A short schema with references could otherwise become a very large one.
	maxSchemaDepth = 24
	maxSchemaNodes = 4000
	// maxSchemaBytes is the maximum size of a normalised schema.
	maxSchemaBytes = 256 << 10
)

// emptySchema is the schema of a tool without arguments.
const emptySchema = `{"type":"object","properties":{}}`

// A schemaDialect says which members of JSON Schema a provider accepts.
type schemaDialect struct {
	// keep are the members that are kept; nil means all.
	keep []string
	// anchoredPatterns drops patterns that do not begin with ^ and end with $, which llama.cpp refuses.
	anchoredPatterns bool
}

// geminiSchema lists the members that Gemini documents for parametersJsonSchema.
var geminiSchema = schemaDialect{keep: []string{"type", "format", "title", "description", "enum", "items", "prefixItems",
	"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"}}

var chatSchema = schemaDialect{anchoredPatterns: true}

// droppedMembers are members that no provider needs, or that some refuse.
var droppedMembers = []string{"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "nullable", "$ref",
	"$dynamicRef", "$dynamicAnchor", "$vocabulary", "$recursiveRef", "$recursiveAnchor", "examples", "const"}

// normaliseSchema returns the schema of a tool's arguments in a form that providers accept: an object with properties,
// without references. The order of members is kept, so that equal schemas give equal bytes.
func normaliseSchema(raw json.RawMessage, d schemaDialect) json.RawMessage {
	if rawjson.Valid(raw) != nil {
		return json.RawMessage(emptySchema)
	}
	n := &schemaNormaliser{root: raw, dialect: d, left: maxSchemaNodes}
	top := n.flattenTop(n.resolve(raw, nil))
	out := n.schema(top.node, top.refs, 0)
	if len(out) > maxSchemaBytes || rawjson.GetString(out, "type") != "object" || rawjson.Valid(out) != nil {
		return json.RawMessage(emptySchema)
	}
	return out
}

// A schemaNormaliser normalises one schema.
type schemaNormaliser struct {
	root    json.RawMessage
	dialect schemaDialect
	left    int // the number of schemas that may still be written
}

// A resolvedSchema is a schema without a reference at its top, and the references that led to it.
type resolvedSchema struct {
	node json.RawMessage
	refs []string
}

// resolve follows the references at the top of a schema. A reference that leads to itself, or to nothing, becomes a
// schema that accepts any value. Members beside the reference are kept, since they describe the value.
func (n *schemaNormaliser) resolve(node json.RawMessage, refs []string) resolvedSchema {
	for {
		ref := rawjson.GetString(node, "$ref")
		if ref == "" {
			return resolvedSchema{node, refs}
		}
		target := n.target(ref)
		beside := rawjson.Apply(node, rawjson.Drop("$ref"))
		if target == nil || slices.Contains(refs, ref) || len(refs) >= maxSchemaDepth {
			return resolvedSchema{describedOnly(beside), refs}
		}
		refs = append(slices.Clip(refs), ref)
		node = mergeMembers(target, beside)
	}
}

// describedOnly returns a schema that accepts any value and has the description of node.
func describedOnly(node json.RawMessage) json.RawMessage {
	if d := rawjson.Get(node, "description"); len(d) > 0 && d[0] == '"' {
		return slices.Concat([]byte(`{"description":`), d, []byte("}"))
	}
	return json.RawMessage("{}")
}

// target returns the schema that a reference within the schema names, or nil.
func (n *schemaNormaliser) target(ref string) json.RawMessage {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	node := n.root
	if pointer == "" {
		return node
	}
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if len(steps) > maxSchemaDepth {
		return nil
	}
	for _, step := range steps {
		node = rawjson.Get(node, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
	}
	if len(node) == 0 || node[0] != '{' {
		return nil
	}
	return node
}

// mergeMembers returns the members of base, and those of more, which replace members of base with the same name.
func mergeMembers(base, more json.RawMessage) json.RawMessage {
	out := newObject()
	for m := range rawjson.Members(base) {
		if !hasMember(more, m) {
			out.add(m.Name, m.Value)
		}
	}
	for m := range rawjson.Members(more) {
		out.add(m.Name, m.Value)
	}
	return out.end()
}

func hasMember(object json.RawMessage, m rawjson.Member) bool {
	name, _ := rawjson.DecodeString(m.Name)
	for other := range rawjson.Members(object) {
		if other.HasName(name) {
			return true
		}
	}
	return false
}

// flattenTop returns a schema without anyOf, oneOf and allOf at its top, which providers refuse there: it has the
// properties of all of them. Of alternatives, only properties that all require are required.
func (n *schemaNormaliser) flattenTop(top resolvedSchema) resolvedSchema {
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		choices := rawjson.Get(top.node, word)
		if len(choices) == 0 {
			continue
		}
		properties := slices.Collect(rawjson.Members(rawjson.Get(top.node, "properties")))
		required := stringElements(rawjson.Get(top.node, "required"))
		var common []string
		count := 0
		for choice := range rawjson.Elements(choices) {
			if count++; count > maxSchemaDepth {
				break
			}
			one := n.resolve(choice, top.refs)
			top.refs = append(slices.Clip(top.refs), one.refs[min(len(one.refs), len(top.refs)):]...)
			properties = appendNewMembers(properties, rawjson.Get(one.node, "properties"))
			needs := stringElements(rawjson.Get(one.node, "required"))
			if word == "allOf" || count == 1 {
				common = append(common, needs...)
			} else {
				common = slices.DeleteFunc(common, func(s string) bool { return !slices.Contains(needs, s) })
			}
		}
		out := newObject()
		for _, p := range properties {
			out.add(p.Name, p.Value)
		}
		required = append(required, common...)
		top.node = rawjson.Apply(top.node, rawjson.Drop(word), rawjson.Put(out.end(), "properties"),
			rawjson.Put(rawjson.AppendStrings(nil, required...), "required"))
	}
	top.node = rawjson.Apply(top.node, rawjson.Put(json.RawMessage(`"object"`), "type"), rawjson.Drop("enum"),
		rawjson.Drop("const"), rawjson.Drop("not"), rawjson.Drop("if"), rawjson.Drop("then"), rawjson.Drop("else"))
	if len(top.node) == 0 || top.node[0] != '{' {
		top.node = json.RawMessage(emptySchema)
	}
	return top
}

func appendNewMembers(all []rawjson.Member, object json.RawMessage) []rawjson.Member {
	for m := range rawjson.Members(object) {
		if !slices.ContainsFunc(all, func(o rawjson.Member) bool { return bytes.Equal(o.Name, m.Name) }) {
			all = append(all, m)
		}
	}
	return all
}

func stringElements(array json.RawMessage) (all []string) {
	for e := range rawjson.Elements(array) {
		if s, ok := rawjson.DecodeString(e); ok {
			all = append(all, s)
		}
	}
	return all
}

// schema returns a normalised schema. refs are the references that led to it.
func (n *schemaNormaliser) schema(node json.RawMessage, refs []string, depth int) json.RawMessage {
	if n.left--; n.left < 0 || depth > maxSchemaDepth || len(node) == 0 || node[0] != '{' {
		return json.RawMessage("{}") // also for the schemas true and false
	}
	at := n.resolve(node, refs)
	if enum := constsOf(at.node); enum != nil {
		return n.withEnum(at.node, enum)
	}
	out, seen := newObject(), map[string]bool{}
	for m := range rawjson.Members(at.node) {
		name, _ := rawjson.DecodeString(m.Name)
		if value := n.member(name, m.Value, at, depth); len(value) > 0 && !seen[name] {
			seen[name] = true
			out.add(m.Name, value)
		}
	}
	if constant := rawjson.Get(at.node, "const"); len(constant) > 0 && !seen["enum"] && n.accepts("enum", constant) {
		out.add(rawjson.Quote("enum"), slices.Concat([]byte("["), constant, []byte("]")))
	}
	switch kind := rawjson.GetString(at.node, "type"); {
	case kind == "object" && !seen["properties"]:
		out.add(rawjson.Quote("properties"), json.RawMessage("{}"))
	case kind == "array" && !seen["items"] && !seen["prefixItems"]:
		out.add(rawjson.Quote("items"), json.RawMessage("{}"))
	}
	return out.end()
}

// accepts reports whether the dialect accepts a value in an enum.
func (n *schemaNormaliser) accepts(member string, value json.RawMessage) bool {
	return n.dialect.keep == nil || member != "enum" || value[0] == '"' || value[0] == '-' ||
		value[0] >= '0' && value[0] <= '9'
}

// member returns the normalised value of a member, or nil if the member is dropped.
func (n *schemaNormaliser) member(name string, value json.RawMessage, at resolvedSchema, depth int) json.RawMessage {
	if slices.Contains(droppedMembers, name) || n.dialect.keep != nil && !slices.Contains(n.dialect.keep, name) {
		return nil
	}
	sub := func(v json.RawMessage) json.RawMessage { return n.schema(v, at.refs, depth+1) }
	switch name {
	case "properties", "patternProperties", "dependentSchemas":
		return n.mapObject(value, sub)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return mapArray(value, sub)
	case "items":
		if len(value) > 0 && value[0] == '[' { // a tuple of an older draft
			return slices.Concat([]byte(`{"anyOf":`), mapArray(value, sub), []byte("}"))
		}
		return sub(value)
	case "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties",
		"unevaluatedItems", "additionalItems":
		if len(value) > 0 && value[0] == '{' {
			return sub(value)
		}
	case "required":
		return requiredProperties(value, rawjson.Get(at.node, "properties"))
	case "enum":
		if n.dialect.keep != nil && slices.ContainsFunc(slices.Collect(rawjson.Elements(value)),
			func(v json.RawMessage) bool { return !n.accepts("enum", v) }) {
			return nil
		}
	case "pattern":
		p, _ := rawjson.DecodeString(value)
		if n.dialect.anchoredPatterns && !(strings.HasPrefix(p, "^") && strings.HasSuffix(p, "$")) {
			return nil
		}
	}
	return value
}

// mapObject returns an object with each value replaced by f.
func (n *schemaNormaliser) mapObject(object json.RawMessage, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	out := newObject()
	for m := range rawjson.Members(object) {
		if n.left <= 0 {
			break
		}
		out.add(m.Name, f(m.Value))
	}
	return out.end()
}

func mapArray(array json.RawMessage, f func(json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte{'['}
	for e := range rawjson.Elements(array) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, f(e)...)
	}
	return append(out, ']')
}

// requiredProperties returns the names in required that are properties, or nil if there are none.
func requiredProperties(required, properties json.RawMessage) json.RawMessage {
	var names []string
	for _, name := range stringElements(required) {
		if len(rawjson.Get(properties, name)) > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return rawjson.AppendStrings(nil, names...)
}

// constsOf returns the values of an anyOf or oneOf whose schemas are all constants, or nil.
func constsOf(node json.RawMessage) (values []json.RawMessage) {
	choices := rawjson.Get(node, "anyOf")
	if len(choices) == 0 {
		choices = rawjson.Get(node, "oneOf")
	}
	for e := range rawjson.Elements(choices) {
		constant := rawjson.Get(e, "const")
		if len(constant) == 0 {
			return nil
		}
		values = append(values, constant)
	}
	return values
}

// withEnum returns node with an enum in place of anyOf and oneOf.
func (n *schemaNormaliser) withEnum(node json.RawMessage, values []json.RawMessage) json.RawMessage {
	out, typed := newObject(), false
	for m := range rawjson.Members(node) {
		if kind, _ := rawjson.DecodeString(m.Value); m.HasName("type") && (kind == "object" || kind == "array") {
			continue // it is not the type of a constant
		}
		if m.HasName("type") || m.HasName("title") || m.HasName("description") || m.HasName("default") &&
			n.dialect.keep == nil {
			typed = typed || m.HasName("type")
			out.add(m.Name, m.Value)
		}
	}
	text := func(v json.RawMessage) bool { return v[0] == '"' }
	if !typed && !slices.ContainsFunc(values, func(v json.RawMessage) bool { return !text(v) }) {
		out.add(rawjson.Quote("type"), json.RawMessage(`"string"`))
	}
	if !slices.ContainsFunc(values, func(v json.RawMessage) bool { return !n.accepts("enum", v) }) {
		out.add(rawjson.Quote("enum"), slices.Concat([]byte("["), bytes.Join(rawValues(values), []byte(",")), []byte("]")))
	}
	return out.end()
}

func rawValues(values []json.RawMessage) [][]byte {
	all := make([][]byte, 0, len(values))
	for _, v := range values {
		all = append(all, v)
	}
	return all
}

// An objectWriter writes a JSON object.
type objectWriter struct{ b []byte }

func newObject() *objectWriter { return &objectWriter{[]byte{'{'}} }

// add appends a member. name includes the quotes.
func (o *objectWriter) add(name, value json.RawMessage) {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, name...), ':'), value...)
}

func (o *objectWriter) end() json.RawMessage { return append(o.b, '}') }

package toolsearch

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// Limits of a ResultShape.
const (
	// maxShapeDepth is the maximum nesting of arrays and objects that a shape describes; deeper ones have only a type.
	maxShapeDepth = 6
	// maxShapeProperties is the maximum number of properties of one object. An object with more is a dictionary.
	maxShapeProperties = 64
	// maxShapeBytes is the maximum length of a schema.
	maxShapeBytes = 4 << 10
)

// A ResultShape describes JSON values by their types and the names of their members. It has no value of them. The names
// come from a server and are read by models, so a shape has only names that are identifiers and do not look like data.
// An object with another name is a dictionary: its names are dropped, and its values are described together. The zero
// value describes no value.
type ResultShape struct {
	types typeSet
	// elements describes the elements of the arrays; nil if they had none, or are too deep.
	elements *ResultShape
	// properties describes the members of the objects by name. required contains the names that every object had.
	properties map[string]*ResultShape
	required   map[string]bool
	// entries describes the values of dictionaries; nil if there was none. Then properties is empty.
	entries *ResultShape
}

// A typeSet is a set of JSON types.
type typeSet uint8

// The JSON types. A set with number has no integer, because number includes it.
const (
	nullType typeSet = 1 << iota
	booleanType
	integerType
	numberType
	stringType
	arrayType
	objectType
)

// typeNames returns the names of the types in JSON Schema, in the order of their bits.
func typeNames() [7]string {
	return [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}
}

// ShapeOfResult returns the shape of the value that a script gets for the result of a tool: the structured content, or
// the JSON object or array in its text, or the text. ok is false for an error, for a result that is not complete, and
// for a result that is not valid or has other content.
func ShapeOfResult(result json.RawMessage) (shape *ResultShape, ok bool) {
	if rawjson.Valid(result) != nil || string(rawjson.Get(result, "isError")) == "true" {
		return nil, false
	}
	if kind := rawjson.Get(result, "resultType"); kind != nil && string(kind) != `"complete"` {
		return nil, false
	}
	if value := rawjson.Get(result, "structuredContent"); value != nil {
		return ShapeOf(value), true
	}
	content := rawjson.Get(result, "content")
	if len(content) == 0 || content[0] != '[' {
		return nil, false
	}
	var texts []string
	for block := range rawjson.Elements(content) {
		text, isText := rawjson.DecodeString(rawjson.Get(block, "text"))
		if !isText || rawjson.GetString(block, "type") != "text" {
			return nil, false
		}
		texts = append(texts, text)
	}
	text := []byte(strings.Join(texts, "\n"))
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') && rawjson.Valid(text) == nil {
		return ShapeOf(text), true
	}
	return &ResultShape{types: stringType}, true
}

// ShapeOf returns the shape of a valid JSON value.
func ShapeOf(value json.RawMessage) *ResultShape { return shapeAt(value, 0) }

// shapeAt returns the shape of a value inside depth arrays and objects.
func shapeAt(value json.RawMessage, depth int) *ResultShape {
	value = bytes.TrimSpace(value)
	s := &ResultShape{}
	if len(value) == 0 {
		return s
	}
	switch value[0] {
	case 'n':
		s.types = nullType
	case 't', 'f':
		s.types = booleanType
	case '"':
		s.types = stringType
	case '[':
		s.types = arrayType
		if depth < maxShapeDepth {
			s.addElements(value, depth+1)
		}
	case '{':
		s.types = objectType
		if depth < maxShapeDepth {
			s.addMembers(value, depth+1)
		}
	default:
		s.types = integerType
		if bytes.ContainsAny(value, ".eE") {
			s.types = numberType
		}
	}
	return s
}

func (s *ResultShape) addElements(array json.RawMessage, depth int) {
	for element := range rawjson.Elements(array) {
		s.elements = mergeShapes(s.elements, shapeAt(element, depth))
	}
}

// addMembers describes the members of one object.
func (s *ResultShape) addMembers(object json.RawMessage, depth int) {
	s.properties, s.required = map[string]*ResultShape{}, map[string]bool{}
	for m := range rawjson.Members(object) {
		name, _ := rawjson.DecodeString(m.Name)
		if isAnnotationName(name) {
			continue
		}
		value := shapeAt(m.Value, depth)
		if s.entries == nil && isPropertyName(name) {
			s.properties[name] = mergeShapes(s.properties[name], value)
			s.required[name] = true
			if len(s.properties) > maxShapeProperties {
				s.makeDictionary()
			}
			continue
		}
		s.makeDictionary()
		s.entries = mergeShapes(s.entries, value)
	}
	if s.haveSameMembers() {
		s.makeDictionary()
	}
}

// makeDictionary drops the names of the properties. It describes their values as the entries of a dictionary.
func (s *ResultShape) makeDictionary() {
	for _, name := range slices.Sorted(maps.Keys(s.properties)) {
		s.entries = mergeShapes(s.entries, s.properties[name])
	}
	s.properties, s.required = map[string]*ResultShape{}, map[string]bool{}
}

// minEntries is the number of properties from which objects with the same members count as entries of a dictionary.
const minEntries = 3

// haveSameMembers reports whether the properties are several objects with the same members. Their names are then
// probably data: the object is indexed by a name or an id.
func (s *ResultShape) haveSameMembers() bool {
	if len(s.properties) < minEntries {
		return false
	}
	var first *ResultShape
	for _, p := range s.properties {
		if first == nil {
			first = p
		}
		if p.types != objectType || len(p.properties) == 0 || !haveSameKeys(p.properties, first.properties) {
			return false
		}
	}
	return true
}

func haveSameKeys(a, b map[string]*ResultShape) bool {
	return maps.EqualFunc(a, b, func(_, _ *ResultShape) bool { return true })
}

// mergeShapes returns the shape of all values that a or b describes. Either may be nil. The result may share parts with
// a and b, which must not be used afterwards.
func mergeShapes(a, b *ResultShape) *ResultShape {
	switch {
	case a == nil || a.types == 0:
		return b
	case b == nil || b.types == 0:
		return a
	}
	if a.types&objectType == 0 {
		a.properties, a.required, a.entries = b.properties, b.required, b.entries
	} else if b.types&objectType != 0 {
		a.mergeMembers(b)
	}
	if a.types |= b.types; a.types&numberType != 0 {
		a.types &^= integerType
	}
	if a.elements == nil {
		a.elements = b.elements
	} else if b.elements != nil {
		a.elements = mergeShapes(a.elements, b.elements)
	}
	return a
}

// mergeMembers adds the objects that b describes.
func (s *ResultShape) mergeMembers(b *ResultShape) {
	if s.entries != nil || b.entries != nil || s.namesChange(b) {
		s.makeDictionary()
		b.makeDictionary()
		if s.entries = mergeShapes(s.entries, b.entries); s.entries == nil {
			s.entries = &ResultShape{}
		}
		return
	}
	for name := range s.required {
		if !b.required[name] {
			delete(s.required, name)
		}
	}
	for name, p := range b.properties {
		if s.properties == nil {
			s.properties = map[string]*ResultShape{}
		}
		s.properties[name] = mergeShapes(s.properties[name], p)
	}
	if len(s.properties) > maxShapeProperties || s.haveSameMembers() {
		s.makeDictionary()
	}
}

// maxOptional is the maximum number of properties of objects that have no property in common.
const maxOptional = 16

// namesChange reports whether the names of two objects differ as the keys of a dictionary do: none is in both, and the
// values have the same types, or there are many names. The names are then probably data.
func (s *ResultShape) namesChange(b *ResultShape) bool {
	if len(s.properties) == 0 || len(b.properties) == 0 {
		return false
	}
	var types typeSet
	total, same, shared, common := len(s.properties), true, false, false
	for name, p := range b.properties {
		_, inBoth := s.properties[name]
		shared = shared || inBoth
		common = common || s.required[name] && b.required[name]
		if !inBoth {
			total++
		}
		same = same && (types == 0 || types == p.types)
		types = p.types
	}
	for _, p := range s.properties {
		same = same && types == p.types
	}
	return !shared && same || !common && total > maxOptional
}

// MergeShapes returns the shape of all values that a or b describes. a and b must not be used afterwards.
func MergeShapes(a, b *ResultShape) *ResultShape { return mergeShapes(a, b) }

// Schema returns the shape as JSON Schema. It has at most maxShapeBytes bytes: the deepest arrays and objects are left
// out if it would be longer. Equal shapes have the same schema.
func (s *ResultShape) Schema() json.RawMessage {
	for depth := maxShapeDepth; depth > 0; depth-- {
		if schema := s.appendSchema(nil, depth); len(schema) <= maxShapeBytes {
			return schema
		}
	}
	return s.appendSchema(nil, 0)
}

// appendSchema appends the schema with at most depth levels of arrays and objects.
func (s *ResultShape) appendSchema(dst []byte, depth int) []byte {
	dst = append(dst, '{')
	dst = s.appendTypes(dst)
	if depth > 0 && s.elements != nil {
		dst = s.elements.appendSchema(append(dst, `,"items":`...), depth-1)
	}
	if depth > 0 && len(s.properties) > 0 {
		dst = append(dst, `,"properties":{`...)
		for i, name := range slices.Sorted(maps.Keys(s.properties)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(rawjson.AppendQuoted(dst, name), ':')
			dst = s.properties[name].appendSchema(dst, depth-1)
		}
		dst = append(dst, '}')
	}
	if depth > 0 && len(s.required) > 0 {
		dst = rawjson.AppendStrings(append(dst, `,"required":`...), slices.Sorted(maps.Keys(s.required))...)
	}
	if depth > 0 && s.entries != nil {
		dst = s.entries.appendSchema(append(dst, `,"additionalProperties":`...), depth-1)
	}
	return append(dst, '}')
}

// appendTypes appends the member "type". A shape without a type, such as that of the entries of an empty dictionary, has
// no such member.
func (s *ResultShape) appendTypes(dst []byte) []byte {
	var names []string
	for i, name := range typeNames() {
		if s.types&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return dst
	case 1:
		return rawjson.AppendQuoted(append(dst, `"type":`...), names[0])
	}
	return rawjson.AppendStrings(append(dst, `"type":`...), names...)
}

// ParseShape returns the shape that Schema encoded. ok is false for another schema.
func ParseShape(schema json.RawMessage) (shape *ResultShape, ok bool) {
	if len(schema) > maxShapeBytes || rawjson.Valid(schema) != nil {
		return nil, false
	}
	s, ok := parseShapeAt(schema, 0)
	return s, ok && s.types != 0
}

func parseShapeAt(schema json.RawMessage, depth int) (s *ResultShape, ok bool) {
	s, ok = &ResultShape{}, depth <= maxShapeDepth
	for m := range rawjson.Members(schema) {
		if !ok {
			return nil, false
		}
		switch string(m.Name) {
		case `"type"`:
			ok = s.parseTypes(m.Value)
		case `"items"`:
			s.elements, ok = parseShapeAt(m.Value, depth+1)
		case `"properties"`:
			ok = s.parseProperties(m.Value, depth+1)
		case `"required"`:
			ok = s.parseRequired(m.Value)
		case `"additionalProperties"`:
			s.entries, ok = parseShapeAt(m.Value, depth+1)
		default:
			ok = false
		}
	}
	for name := range s.required {
		ok = ok && s.properties[name] != nil
	}
	isObject, isArray := s.types&objectType != 0, s.types&arrayType != 0
	ok = ok && (isObject || s.entries == nil && len(s.properties) == 0) && (isArray || s.elements == nil)
	return s, ok && (s.entries == nil || len(s.properties) == 0)
}

func (s *ResultShape) parseTypes(value json.RawMessage) bool {
	var names []string
	if name, ok := rawjson.DecodeString(value); ok {
		names = []string{name}
	} else if json.Unmarshal(value, &names) != nil {
		return false
	}
	all := typeNames()
	for _, name := range names {
		i := slices.Index(all[:], name)
		if i < 0 {
			return false
		}
		s.types |= 1 << i
	}
	return true
}

func (s *ResultShape) parseProperties(object json.RawMessage, depth int) bool {
	s.properties = map[string]*ResultShape{}
	for m := range rawjson.Members(object) {
		name, _ := rawjson.DecodeString(m.Name)
		p, ok := parseShapeAt(m.Value, depth)
		if !ok || !isPropertyName(name) || len(s.properties) == maxShapeProperties {
			return false
		}
		s.properties[name] = p
	}
	return true
}

func (s *ResultShape) parseRequired(value json.RawMessage) bool {
	var names []string
	if json.Unmarshal(value, &names) != nil {
		return false
	}
	s.required = map[string]bool{}
	for _, name := range names {
		s.required[name] = true
	}
	return true
}

package drawbridge

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Result is the result object of a call as JSON bytes. Its methods read the members of a tools/call result.
type Result struct {
	Raw json.RawMessage
	// Foreign is set by a card whose result contains texts of a server that the caller would get marked as foreign
	// texts. Drawbridge then marks the texts of this result too. Results of servers do not set it.
	Foreign bool
}

// A contentBlock has the members of a content block that Text uses. See "ContentBlock" in the schema of MCP.
type contentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mimeType"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// Text returns the result as one text, for a person or a model. A text block is copied. An image becomes "[Image:
// image/png]", audio "[Audio: audio/wav]" and a link "[Resource: uri]". An embedded resource becomes "[Resource: uri]"
// with the resource's text on the next line. A blank line separates the blocks. The structured content is added,
// indented, only if the result has no text block, because servers usually repeat structured content as a text block.
// The returned text may contain control characters that the server sent.
func (r Result) Text() string {
	var content []json.RawMessage
	_ = json.Unmarshal(r.member("content"), &content) // content that is not an array has no parts
	var parts []string
	hasText := false
	for _, raw := range content {
		var block contentBlock
		if json.Unmarshal(raw, &block) != nil {
			continue
		}
		if text := block.text(); text != "" {
			parts = append(parts, text)
			hasText = hasText || block.Type == "text"
		}
	}
	if structured := r.StructuredContent(); !hasText && structured != nil {
		var indented bytes.Buffer
		if json.Indent(&indented, structured, "", "  ") == nil {
			parts = append(parts, indented.String())
		}
	}
	return strings.Join(parts, "\n\n")
}

// text returns the block as a text.
func (b contentBlock) text() string {
	switch b.Type {
	case "text":
		return b.Text
	case "image":
		return "[Image: " + b.MIMEType + "]"
	case "audio":
		return "[Audio: " + b.MIMEType + "]"
	case "resource_link":
		return "[Resource: " + b.URI + "]"
	case "resource":
		if b.Resource.Text == "" {
			return "[Resource: " + b.Resource.URI + "]"
		}
		return "[Resource: " + b.Resource.URI + "]\n" + b.Resource.Text
	}
	return "[" + b.Type + "]"
}

// StructuredContent returns the member structuredContent; nil if it is absent or null.
func (r Result) StructuredContent() json.RawMessage {
	if structured := r.member("structuredContent"); string(structured) != "null" {
		return structured
	}
	return nil
}

// IsError reports whether the member isError is true. Then the tool reports that the call failed, and Text returns the
// reason.
func (r Result) IsError() bool { return string(r.member("isError")) == "true" }

// member returns a member of the result object by its exact name.
func (r Result) member(name string) json.RawMessage {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(r.Raw, &members) // if Raw is not an object, it has no members
	return members[name]
}

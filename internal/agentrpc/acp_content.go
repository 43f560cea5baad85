package agentrpc

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
)

// A contentBlock is a block of a prompt or of an answer.
type contentBlock struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	Data     string            `json:"data,omitempty"`
	MIMEType string            `json:"mimeType,omitempty"`
	URI      string            `json:"uri,omitempty"`
	Name     string            `json:"name,omitempty"`
	Resource *embeddedResource `json:"resource,omitempty"`
}

// An embeddedResource is a file that the client sends with a prompt.
type embeddedResource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     string  `json:"blob"`
}

func textBlock(text string) *contentBlock { return &contentBlock{Type: "text", Text: text} }

// promptParts returns the parts of a prompt. Texts and links that follow each other are one text, as the person wrote
// them; embedded files follow the text.
func promptParts(blocks []contentBlock) (parts []drawbridge.MessagePart, problem *rpcError) {
	var text, files strings.Builder
	var attached []string
	for i, b := range blocks {
		var image *drawbridge.Image
		switch {
		case b.Type == "text":
			text.WriteString(b.Text)
		case b.Type == "resource_link" && b.URI != "":
			fmt.Fprintf(&text, "[%s](%s)", b.Name, b.URI)
		case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
			attached = append(attached, b.Resource.URI)
			fmt.Fprintf(&files, "\n<file path=%q>\n%s\n</file>\n", b.Resource.URI, *b.Resource.Text)
		case b.Type == "resource" && b.Resource != nil:
			image = imageOf(b.Resource.MIMEType, b.Resource.Blob)
		case b.Type == "image":
			image = imageOf(b.MIMEType, b.Data)
		}
		switch b.Type {
		case "text", "resource_link":
			continue
		case "resource":
			if b.Resource != nil && b.Resource.Text != nil {
				continue
			}
		}
		if image == nil {
			return nil, invalidParams(fmt.Sprintf("block %d of the prompt is neither a text, a link nor an image", i+1))
		}
		parts = append(parts, drawbridge.MessagePart{Image: image})
	}
	if whole := strings.TrimSpace(text.String() + files.String()); whole != "" {
		prompt := drawbridge.MessagePart{Text: whole}
		if len(attached) > 0 {
			typed := text.String()
			prompt.Typed, prompt.Attached = &typed, attached
		}
		parts = append([]drawbridge.MessagePart{prompt}, parts...)
	}
	if len(parts) == 0 {
		return nil, invalidParams("the prompt is empty")
	}
	return parts, nil
}

// imageOf returns an image; nil if the data is not one.
func imageOf(mimeType, data string) *drawbridge.Image {
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(content) == 0 || !strings.HasPrefix(mimeType, "image/") {
		return nil
	}
	return &drawbridge.Image{MIMEType: mimeType, Data: content}
}

// A sessionUpdate tells the client what happened in a session. Update says which members are set.
type sessionUpdate struct {
	Update string `json:"sessionUpdate,omitempty"`
	// Content is a *contentBlock of a message, or the []toolContent of a call.
	Content   any             `json:"content,omitempty"`
	Call      string          `json:"toolCallId,omitempty"`
	Title     string          `json:"title,omitempty"`
	Severity  string          `json:"severity,omitempty"`
	Kind      string          `json:"kind,omitempty"`
	Status    string          `json:"status,omitempty"`
	Input     any             `json:"rawInput,omitempty"`
	Output    any             `json:"rawOutput,omitempty"`
	Locations []location      `json:"locations,omitempty"`
	Mode      string          `json:"currentModeId,omitempty"`
	Commands  []sessionAction `json:"availableCommands,omitempty"`
	Options   []configOption  `json:"configOptions,omitempty"`
	// Entries is the []planEntry of a plan, which may be empty.
	Entries any `json:"entries,omitempty"`
	// Used, Size and Cost are the tokens that the model sees, the size of its window, and the cost so far.
	Used int64       `json:"used,omitempty"`
	Size int         `json:"size,omitempty"`
	Cost *usedAmount `json:"cost,omitempty"`
}

// A usedAmount is an amount of money.
type usedAmount struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// toolContent is a part of the output of a call: a block, or the change of a file. Without an old text, the file is new
// or its earlier content is not known.
type toolContent struct {
	Type    string        `json:"type"`
	Content *contentBlock `json:"content,omitempty"`
	Path    string        `json:"path,omitempty"`
	OldText *string       `json:"oldText,omitempty"`
	NewText *string       `json:"newText,omitempty"`
}

// A location is a file that a call reads or changes.
type location struct {
	Path string `json:"path"`
}

// A sessionAction is a command that the person can type in place of a prompt.
type sessionAction struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func toolText(text string) []toolContent {
	return []toolContent{{Type: "content", Content: textBlock(text)}}
}

package agent

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/drawbridge-mcp/drawbridge"
)

const (
	// defaultResultLimit is the default of Options.ResultLimit.
	defaultResultLimit = 64 << 10
	// imageLimit is the maximum size of the images of a result together, in bytes.
	imageLimit = 4 << 20
	// structuredLimit is the maximum size of structured content that is kept beside a result.
	structuredLimit = 256 << 10
)

// Texts that a model sees about a call.
const (
	unknownText = "The outcome of this call is unknown: it was sent, and no answer came. " +
		"It may have taken effect. Check that before you repeat it."
	interruptedText = "The program ended while this call ran. The outcome of this call is unknown: it may have taken effect. " +
		"Check that before you repeat it."
	notSentText         = "This call was not made: the program ended before."
	cancelledText       = "This call was cancelled. Its outcome is unknown: it may have taken effect."
	cancelledBeforeText = "Cancelled before %s could begin."
)

// A resultMaker turns what a tool returned into what a model sees.
type resultMaker struct {
	limit int
	fence func(source, text string) string
}

// make returns the result of a call for the model, and the facts beside it. plain is the result's text without the
// fence, which has a random word.
func (m resultMaker) make(ctx context.Context, call drawbridge.ToolCall, o CallOutcome, err error) (
	result *drawbridge.ToolResult, details *CallDetails, plain string) {
	details = &CallDetails{Server: o.Server, Tool: o.Tool, ScriptCalls: o.ScriptCalls, Label: o.Label}
	result = &drawbridge.ToolResult{CallID: call.ID, Name: call.Name}
	var before, after string
	switch fault, isFault := errors.AsType[*drawbridge.Fault](err); {
	case err == nil:
		result.IsError = o.Result.IsError()
		if plain = o.Result.Text(); result.IsError {
			before = "Error: "
		}
		if structured := o.Result.StructuredContent(); len(structured) <= structuredLimit {
			details.Structured = compacted(structured)
		}
		result.Images, after = images(o.Result)
	case ctx.Err() != nil && (!isFault || isEndOf(ctx, err)):
		result.IsError, details.Cancelled, details.Unknown = true, true, !isFault || fault.Ambiguous
		if result.Text = cancelledText; !details.Unknown {
			result.Text = fmt.Sprintf(cancelledBeforeText, call.Name)
		}
		return result, details, result.Text
	default:
		result.IsError, before = true, "MCP error: "
		if plain = drawbridge.AsFault(err).Error(); isFault && fault.Ambiguous {
			details.Unknown, after = true, "\n\n"+unknownText
		}
	}
	plain = clampMiddle(strings.ToValidUTF8(plain, "\uFFFD"), m.limit)
	shown := plain
	if o.Fenced && plain != "" {
		shown = m.fence(sourceName(o), plain)
	}
	result.Text = before + shown + after
	return result, details, before + plain + after
}

// isEndOf reports whether err is the end of ctx.
func isEndOf(ctx context.Context, err error) bool {
	return errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// sourceName returns the name of the tool that answered, for the marker of a fence.
func sourceName(o CallOutcome) string {
	if o.Server == "" {
		return o.Tool
	}
	return o.Server + "/" + o.Tool
}

// images returns the images of a result, and a text about those that are left out because they are too large.
func images(r drawbridge.Result) (all []drawbridge.Image, notice string) {
	var result struct {
		Content []struct {
			Type     string `json:"type"`
			Data     string `json:"data"`
			MIMEType string `json:"mimeType"`
		} `json:"content"`
	}
	if !strings.Contains(string(r.Raw), `"image"`) || json.Unmarshal(r.Raw, &result) != nil {
		return nil, ""
	}
	size, omitted, bytes := 0, 0, 0
	for _, block := range result.Content {
		if block.Type != "image" {
			continue
		}
		n := base64.StdEncoding.DecodedLen(len(block.Data))
		if size+n > imageLimit {
			omitted, bytes = omitted+1, bytes+n
			continue
		}
		if data, err := base64.StdEncoding.DecodeString(block.Data); err == nil {
			size += n
			all = append(all, drawbridge.Image{MIMEType: block.MIMEType, Data: data})
		}
	}
	if omitted > 0 {
		notice = fmt.Sprintf("\n[%d images with %d bytes are not shown]", omitted, bytes)
	}
	return all, notice
}

// clampMiddle returns the beginning and the end of a text, with at most limit bytes. Between both is a notice with the
// number of missing bytes.
func clampMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head, tail := limit/2, len(text)-(limit-limit/2)
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[%d bytes elided to stay within the output ceiling]\n%s", text[:head], tail-head, text[tail:])
}

// The marker of the built-in fence. In a text between the lines, the prefix is replaced.
const (
	fencePrefix   = "[TOOL_OUTPUT::"
	defusedPrefix = `[TOOL_OUTPUT\u003a\u003a`
)

// Fence returns a text from outside between two lines with the same random word, so that a model sees where it begins and
// ends. The text cannot end the fence, because it does not know the word. source is where the text comes from.
func Fence(source, text string) string {
	word := rand.Text()
	source = strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && r != '[' && r != ']' {
			return r
		}
		return '_'
	}, source)
	return fencePrefix + word + "::BEGIN source=" + source + "]\n" +
		strings.ReplaceAll(text, fencePrefix, defusedPrefix) + "\n" + fencePrefix + word + "::END]"
}

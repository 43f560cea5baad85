package drawbridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A ToolDefinition describes a tool to a model.
type ToolDefinition struct {
	Name        CardName
	Description string
	// InputSchema is the JSON schema of the arguments. A model provider gets a normalised copy, because providers accept
	// different subsets of JSON Schema.
	InputSchema json.RawMessage
	// Deferred is true if the model need not see the tool before it has searched for it. A provider without deferred
	// tools must not get it.
	Deferred bool
}

// A ThinkingLevel is how much a model thinks before it answers. Providers have different steps; each level is sent as
// the nearest step.
type ThinkingLevel string

// The thinking levels. The empty level is the provider's default.
const (
	ThinkingOff     ThinkingLevel = "off"
	ThinkingMinimal ThinkingLevel = "minimal"
	ThinkingLow     ThinkingLevel = "low"
	ThinkingMedium  ThinkingLevel = "medium"
	ThinkingHigh    ThinkingLevel = "high"
	ThinkingXHigh   ThinkingLevel = "xhigh"
)

// ThinkingLevels returns the levels, from the least to the most thinking, without the empty one.
func ThinkingLevels() []ThinkingLevel {
	return []ThinkingLevel{ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh}
}

// A ModelRequest asks a model for the next message of a conversation.
type ModelRequest struct {
	// Instructions is the system prompt.
	Instructions string
	Messages     []Message
	// Tools are the tools that the model may call, in the order in which it sees them.
	Tools []ToolDefinition
	// MaxOutput limits the tokens of the answer; 0 means the provider's default.
	MaxOutput int
	Thinking  ThinkingLevel
	// CacheKey identifies the conversation. A provider may use it to find its cached prefix.
	CacheKey string
}

// A ModelDelta is a piece of an answer that is still arriving. One member is set.
type ModelDelta struct {
	Text     string
	Thinking string
	// Call names a tool whose call the model has begun to write; its arguments are not complete.
	Call CardName
	// Retry says that the request is sent again, and why. What arrived before is void.
	Retry *ModelRetry
}

// A ModelRetry says that a request to a model is sent again.
type ModelRetry struct {
	// Attempt is the number of the attempt that follows, from 2.
	Attempt int
	After   time.Duration
	Err     error
}

// A StopReason is why a model stopped.
type StopReason string

// The stop reasons.
const (
	StopEnd       StopReason = "end"
	StopToolCalls StopReason = "tool_calls"
	StopMaxOutput StopReason = "max_output"
	StopRefusal   StopReason = "refusal"
	// StopPaused is an answer that the model continues when it gets the conversation again.
	StopPaused StopReason = "paused"
)

// A ModelResponse is a complete answer of a model.
type ModelResponse struct {
	Message Message
	Stop    StopReason
	Usage   ModelUsage
	// Model is the model that answered, as "provider/name". It differs from the requested one after a fallback.
	Model string
	// Price is the price of Model after a fallback. The zero value means the price of the requested model.
	Price ModelPrice
}

// A ModelUsage counts the tokens of one or more answers. Input includes CacheRead and CacheWrite.
type ModelUsage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
}

// Add returns the sum of u and v.
func (u ModelUsage) Add(v ModelUsage) ModelUsage {
	return ModelUsage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
	}
}

// A ModelInfo describes a model. A number is 0 if it is not known.
type ModelInfo struct {
	// Provider is the name of the provider in the settings, and Name the model's name at the provider.
	Provider, Name string
	// Window is the number of tokens that the request and the answer may have together.
	Window int
	// MaxOutput is the greatest number of tokens of an answer.
	MaxOutput int
	// Images and DeferredTools report what the model accepts.
	Images, DeferredTools bool
	// Price is what a million tokens cost.
	Price ModelPrice
}

// String returns "provider/name".
func (i ModelInfo) String() string { return i.Provider + "/" + i.Name }

// A ModelPrice is the price of a million tokens of each kind, in US dollars.
type ModelPrice struct {
	Input, Output, CacheRead, CacheWrite float64
}

// IsKnown reports whether p has a price of input tokens and one of output tokens.
func (p ModelPrice) IsKnown() bool { return p.Input > 0 && p.Output > 0 }

// Cost returns the price of u in US dollars. Without a price of its own, a cached token costs as much as an input token.
func (p ModelPrice) Cost(u ModelUsage) float64 {
	price := func(own float64) float64 {
		if own == 0 {
			return p.Input
		}
		return own
	}
	plain := u.Input - u.CacheRead - u.CacheWrite
	return (float64(plain)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*price(p.CacheRead) + float64(u.CacheWrite)*price(p.CacheWrite)) / 1e6
}

// A ModelErrorCode classifies a ModelError.
type ModelErrorCode string

// The codes of model errors.
const (
	// ModelKeyMissing: no key is configured. ModelKeyRejected: the provider does not accept the key.
	ModelKeyMissing  ModelErrorCode = "key_missing"
	ModelKeyRejected ModelErrorCode = "key_rejected"
	// ModelUnknown: the provider has no such model, or the settings name no such provider.
	ModelUnknown ModelErrorCode = "model_unknown"
	// ModelRateLimited and ModelOverloaded: the provider asks for fewer requests, and did so after the last retry too.
	ModelRateLimited ModelErrorCode = "rate_limited"
	ModelOverloaded  ModelErrorCode = "overloaded"
	// ModelQuota: the account has no money left. Retrying does not help.
	ModelQuota ModelErrorCode = "quota"
	// ModelContextTooLong: the conversation has more tokens than the model accepts.
	ModelContextTooLong ModelErrorCode = "context_too_long"
	// ModelRejected: the provider does not accept the request for another reason.
	ModelRejected ModelErrorCode = "rejected"
	// ModelUnreachable: no answer came. ModelBroken: an answer began and did not end, or could not be read.
	ModelUnreachable ModelErrorCode = "unreachable"
	ModelBroken      ModelErrorCode = "broken_answer"
)

// A ModelError says why a model gave no answer. Its text has no key and no text of the conversation.
type ModelError struct {
	Code ModelErrorCode
	// Model is the model that was asked, as "provider/name".
	Model string
	// Err is the cause; it may be nil.
	Err error
	// Next tells a person what to do next; empty without a hint.
	Next string
}

// Error returns the model, the code in words, the cause and the next step in one line.
func (e *ModelError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ask the model %s: %s", e.Model, strings.ReplaceAll(string(e.Code), "_", " "))
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Next != "" {
		fmt.Fprintf(&b, " (%s)", e.Next)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// MayFallBack reports whether another model may answer the same request.
func (e *ModelError) MayFallBack() bool {
	return e.Code != ModelRejected && e.Code != ModelContextTooLong
}

package llm

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/safetext"
)

const (
	// maxProviderMessage is the maximum length of a provider's message in an error.
	maxProviderMessage = 200
	// minEcho is the length from which a text in a provider's message counts as copied from the conversation.
	minEcho = 12
)

// streamError returns the error in an event or a document, or nil if it has none. The status is the one that the error
// names, or 0.
func streamError(raw []byte) *ProviderError {
	object := errorObject(raw)
	if len(object) == 0 || string(object) == "null" {
		return nil
	}
	e := &ProviderError{Code: providerErrorCode(raw), body: raw[:min(len(raw), maxErrorBody)]}
	var named struct {
		Code   json.RawMessage `json:"code"`
		Status json.RawMessage `json:"status"`
	}
	_ = json.Unmarshal(object, &named)
	for _, n := range []json.RawMessage{named.Code, named.Status} {
		var status int
		if json.Unmarshal(n, &status) == nil && status >= 400 && status < 600 {
			e.Status = status
		}
	}
	e.Delay = retryInfoDelay(raw)
	return e
}

// providerMessage returns the provider's message in an error response, or "".
func providerMessage(raw []byte) string {
	object := errorObject(raw)
	for _, found := range []string{
		rawjson.GetString(object, "message"), decodedText(object), rawjson.GetString(raw, "message"),
		rawjson.GetString(raw, "detail"),
	} {
		if found != "" {
			return found
		}
	}
	return ""
}

func decodedText(raw json.RawMessage) string {
	s, _ := rawjson.DecodeString(raw)
	return s
}

// A failure is a provider's error with its class.
type failure struct {
	code drawbridge.ModelErrorCode
	// retry reports whether the same request may succeed later.
	retry bool
}

// quotaCodes are the codes and words of providers for an account without money. contextCodes and contextWords are
// those for a conversation that is too long.
var (
	quotaCodes   = []string{"insufficient_quota", "billing_error", "billing_not_active", "billing_hard_limit_reached"}
	quotaWords   = []string{"credit balance", "insufficient credits", "insufficient balance"}
	contextCodes = []string{"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
	contextWords = []string{
		"prompt is too long", "context length", "context limit", "context size", "context window", "maximum context",
		"input token count", "maximum prompt length", "too many tokens in", "reduce the length of the messages",
	}
	keyWords = []string{"api key not valid", "api key expired"}
)

// classify returns the class of an error of apiClient.stream.
func classify(err error) failure {
	answer, ok := errors.AsType[*ProviderError](err)
	switch {
	case errors.Is(err, errKeyNotFound):
		return failure{drawbridge.ModelKeyMissing, false}
	case errors.Is(err, errNotStream), errors.Is(err, errTooLarge):
		return failure{drawbridge.ModelBroken, false}
	case errors.Is(err, errUnreachable), errors.Is(err, errTimeout):
		return failure{drawbridge.ModelUnreachable, true}
	case errors.Is(err, errCertificate), errors.Is(err, errSilent):
		return failure{drawbridge.ModelUnreachable, false}
	case !ok:
		return failure{drawbridge.ModelBroken, true}
	}
	f := classifyAnswer(answer)
	if answer.mayRetry != nil && f.code != drawbridge.ModelContextTooLong {
		f.retry = *answer.mayRetry
	}
	return f
}

// classifyAnswer returns the class of an error response or of an error in a stream.
func classifyAnswer(e *ProviderError) failure {
	code, text := strings.ToLower(e.Code), strings.ToLower(providerMessage(e.body))
	details := strings.ToLower(string(errorObject(e.body, "details")))
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	refused := e.Status < 500 && e.Status != http.StatusTooManyRequests
	switch {
	case e.Status == http.StatusPaymentRequired, slices.Contains(quotaCodes, code), e.Status < 500 && has(quotaWords),
		strings.Contains(details, "perday"): // a quota of a day
		return failure{drawbridge.ModelQuota, false}
	case e.Status == http.StatusRequestEntityTooLarge, slices.Contains(contextCodes, code),
		e.Status != http.StatusTooManyRequests && has(contextWords):
		return failure{drawbridge.ModelContextTooLong, false}
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden,
		refused && (has(keyWords) || strings.Contains(details, "api_key_invalid")),
		code == "authentication_error", code == "permission_error", code == "invalid_api_key":
		return failure{drawbridge.ModelKeyRejected, false}
	case e.Status == http.StatusNotFound, code == "not_found_error", code == "model_not_found":
		return failure{drawbridge.ModelUnknown, false}
	case e.Status == http.StatusTooManyRequests, code == "rate_limit_error", code == "rate_limit_exceeded",
		code == "resource_exhausted":
		return failure{drawbridge.ModelRateLimited, true}
	case e.Status == 529, e.Status == http.StatusServiceUnavailable, code == "overloaded_error", code == "unavailable",
		code == "server_is_overloaded", code == "slow_down":
		return failure{drawbridge.ModelOverloaded, true}
	case e.Status == http.StatusNotImplemented:
		return failure{drawbridge.ModelRejected, false}
	case e.Status >= 500, e.Status == http.StatusRequestTimeout, e.Status == http.StatusConflict:
		return failure{drawbridge.ModelUnreachable, true}
	case e.Status >= 300 && e.Status < 400:
		return failure{drawbridge.ModelUnreachable, false}
	case e.Status == 0 && !slices.Contains([]string{"invalid_request_error", "invalid_prompt", "invalid_argument"}, code):
		return failure{drawbridge.ModelBroken, true} // an error inside a stream
	}
	return failure{drawbridge.ModelRejected, false}
}

// A rejection is a provider's error with a part of the provider's message.
type rejection struct {
	*ProviderError
	message string
}

// Error returns the error and the message.
func (r *rejection) Error() string {
	if r.Status == 0 {
		return r.message
	}
	return r.ProviderError.Error() + ": " + r.message
}

// Unwrap returns the error without the message.
func (r *rejection) Unwrap() error { return r.ProviderError }

// explain adds the provider's message to an error if a person needs it: if the request is refused for a reason that
// only the message tells. Secrets, and texts of the conversation, are removed from the message.
func explain(err error, code drawbridge.ModelErrorCode, known []string, r drawbridge.ModelRequest) error {
	answer, ok := errors.AsType[*ProviderError](err)
	if !ok || code == drawbridge.ModelKeyRejected || code == drawbridge.ModelKeyMissing {
		return err
	}
	message := strings.Join(strings.Fields(strings.ToValidUTF8(providerMessage(answer.body), "")), " ")
	for _, secret := range known {
		message = strings.ReplaceAll(message, secret, drawbridge.Redacted)
	}
	message = safetext.Line(safetext.Truncate(message, 2*maxProviderMessage, safetext.Bytes, ""))
	message = removeEchoes(message, conversationTexts(r))
	message = safetext.Truncate(message, maxProviderMessage, safetext.Bytes, "…")
	if message == "" {
		return err
	}
	return &rejection{answer, message}
}

// conversationTexts returns all texts of the conversation.
func conversationTexts(r drawbridge.ModelRequest) (all []string) {
	all = append(all, r.Instructions)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			all = append(all, p.Text)
			switch {
			case p.Thinking != nil:
				all = append(all, p.Thinking.Text)
			case p.ToolCall != nil:
				all = append(all, string(p.ToolCall.Arguments))
			case p.ToolResult != nil:
				all = append(all, p.ToolResult.Text)
			}
		}
	}
	return all
}

// removeEchoes replaces each part of message that is also in one of texts by "…", if it has at least minEcho bytes.
func removeEchoes(message string, texts []string) string {
	echo := make([]bool, len(message))
	for i := 0; i+minEcho <= len(message); i++ {
		part := message[i : i+minEcho]
		if slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, part) }) {
			for j := range minEcho {
				echo[i+j] = true
			}
		}
	}
	var b strings.Builder
	for i := range len(message) {
		switch {
		case !echo[i]:
			b.WriteByte(message[i])
		case i == 0 || !echo[i-1]:
			b.WriteString("…")
		}
	}
	return strings.ToValidUTF8(b.String(), "")
}

package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed webhook (Standard Webhooks 1.0.0, https://www.standardwebhooks.com).
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// eventPending is the event type for a call that waits for approval.
const eventPending = "approval.pending"

// A webhookBody is the body of a webhook.
type webhookBody struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		Approval
		// Show is the command that shows the call.
		Show string `json:"show"`
	} `json:"data"`
}

// post sends the webhook request for a call. After a network error and after a status of 429 or 5xx, it tries again,
// once after each of the pauses in Options.
func (n *Notifier) post(ctx context.Context, a Approval) error {
	now := time.Now()
	body := webhookBody{Type: eventPending, Timestamp: now.UTC()}
	body.Data.Approval, body.Data.Show = a, a.ShowCommand()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		again, err := n.postOnce(ctx, "approval_"+a.ID, now, text)
		if err == nil || !again || attempt == len(n.o.pauses) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(n.o.pauses[attempt]):
		}
	}
}

// postOnce sends one webhook request. again reports whether another attempt may succeed.
func (n *Notifier) postOnce(ctx context.Context, id string, at time.Time, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.o.WebhookURL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("the URL is invalid")
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(headerID, id)
	req.Header.Set(headerTimestamp, timestamp)
	req.Header.Set(headerSignature, sign(n.o.WebhookSecret, id, timestamp, body))
	answer, err := n.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may contain a key
		}
		return true, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // the connection can be reused
	if answer.StatusCode/100 == 2 {
		return false, nil
	}
	return answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500,
		fmt.Errorf("the receiver answers %s", answer.Status)
}

// secretPrefix is the prefix of a secret that is encoded in Base64.
const secretPrefix = "whsec_"

// sign returns the value of the header Webhook-Signature. A secret with the prefix whsec_ is decoded from Base64. Any
// other secret, or an invalid encoding, is used as it is.
func sign(secret, id, timestamp string, body []byte) string {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			key = decoded
		}
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%s.", id, timestamp)
	_, _ = mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

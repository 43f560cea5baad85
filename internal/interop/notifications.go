package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// The maximum number of queued notifications of one call, and their maximum total size in bytes. Notifications are
// queued for the caller's next request, or for a caller that reads slowly.
const (
	maxBufferedNotifications = 256
	maxBufferedBytes         = 256 << 10
)

// A bufferedNotification is a notification that a server sent.
type bufferedNotification struct {
	method string
	params json.RawMessage
}

func (n bufferedNotification) size() int { return len(n.method) + len(n.params) }

// A notificationBuffer holds the notifications of a statelessCall that are not delivered yet, in order. The call's
// mutex mu guards the buffer.
type notificationBuffer struct {
	notes []bufferedNotification
	bytes int
	// roomSignal is closed and replaced when the buffer has room again, or when the caller's request to which
	// notifications are delivered ends.
	roomSignal chan struct{}
}

func (b *notificationBuffer) fits(n bufferedNotification) bool {
	return len(b.notes) < maxBufferedNotifications && b.bytes+n.size() <= maxBufferedBytes
}

func (b *notificationBuffer) add(n bufferedNotification) {
	b.notes = append(b.notes, n)
	b.bytes += n.size()
}

func (b *notificationBuffer) dropFirst() {
	b.bytes -= b.notes[0].size()
	b.notes = slices.Delete(b.notes, 0, 1)
	b.wakeWaiters()
}

func (b *notificationBuffer) wakeWaiters() {
	close(b.roomSignal)
	b.roomSignal = make(chan struct{})
}

// Notify queues a notification of the server. If the queue is full while a request of the caller is waiting, Notify
// waits for room. If no request is waiting, Notify drops the notification. The error is the cause of the call's end, or
// ctx's error.
func (t *statelessCall) Notify(ctx context.Context, method string, params json.RawMessage) error {
	n := bufferedNotification{method, params}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.peer != nil && len(t.buffered.notes) > 0 && !t.buffered.fits(n) {
		if err := t.waitUnlocked(ctx, t.buffered.roomSignal); err != nil {
			return err
		}
	}
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case t.peer == nil:
		t.bufferNotification(n)
	default:
		t.buffered.add(n)
		t.signal()
	}
	return nil
}

// waitUnlocked unlocks mu, waits until moved is closed, ctx ends or the call ends, and locks mu again. It returns nil
// only if moved was closed.
func (t *statelessCall) waitUnlocked(ctx context.Context, moved <-chan struct{}) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// bufferNotification stores a notification for the caller's next request. It drops log messages that the caller did not
// ask for, and notifications for which there is no room. The caller must hold mu.
func (t *statelessCall) bufferNotification(n bufferedNotification) {
	if n.method == mcp.NoteMessage && !t.logs || !t.buffered.fits(n) {
		return
	}
	n.params = bytes.Clone(n.params) // params may be a small part of a large message
	t.buffered.add(n)
}

// detachPeer ends the delivery of notifications to the caller's current request. Undelivered notifications are stored
// for the next request.
func (t *statelessCall) detachPeer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.peer, t.token = nil, nil
	notes := t.buffered.notes
	t.buffered.notes, t.buffered.bytes = nil, 0
	for _, n := range notes {
		t.bufferNotification(n)
	}
	t.buffered.wakeWaiters()
}

// deliverNotifications delivers the queued notifications to the waiting request. Only the goroutine of that request
// calls it, so the notifications arrive in order. It delivers only the notifications that are queued when it begins;
// otherwise a server that sends many notifications could keep it from returning.
func (t *statelessCall) deliverNotifications(ctx context.Context) {
	t.mu.Lock()
	peer, token, count := t.peer, t.token, len(t.buffered.notes)
	t.mu.Unlock()
	for ; count > 0 && peer != nil && ctx.Err() == nil; count-- {
		t.mu.Lock()
		n := t.buffered.notes[0]
		t.mu.Unlock()
		if err := sendNotification(ctx, peer, token, n); err != nil {
			t.env.Logger.Debug("a caller did not take a notification", "error", err)
			t.detachPeer()
			return
		}
		t.mu.Lock()
		t.buffered.dropFirst()
		t.mu.Unlock()
	}
}

// sendNotification sends a notification to a peer. A progress notification is sent only if the peer's request has a
// progress token, and gets that token.
func sendNotification(ctx context.Context, peer drawbridge.Peer, token json.RawMessage, n bufferedNotification) error {
	if n.method == mcp.NoteProgress {
		if token == nil {
			return nil
		}
		n.params = rawjson.Apply(n.params, rawjson.Put(token, mcp.MetaProgressToken))
	}
	return peer.Notify(ctx, n.method, n.params)
}

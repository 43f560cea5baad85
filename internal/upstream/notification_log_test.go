package upstream

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
)

func TestNotificationLog(t *testing.T) {
	var e managedServer
	e.redactor.addToken("s3cret-token")
	for i := range 3 * maxRecentNotifications {
		e.recordNotification(mcp.NoteMessage, fmt.Appendf(nil, `{"level":"info","data":"%d s3cret-token"}`, i))
		e.recordNotification(mcp.NoteProgress, []byte(`{"progress":1}`))
	}
	counts, recent := e.notifications.report()
	if counts[mcp.NoteMessage] != 150 || counts[mcp.NoteProgress] != 150 || len(counts) != 2 {
		t.Errorf("the counts are %v", counts)
	}
	if len(recent) != maxRecentNotifications || !strings.Contains(recent[0].Params, `"100 `) ||
		!strings.Contains(recent[49].Params, `"149 `) {
		t.Errorf("%d are kept: %v", len(recent), recent)
	}
	for _, n := range recent {
		if n.Method != mcp.NoteMessage || strings.Contains(n.Params, "s3cret") || n.At.IsZero() {
			t.Fatalf("kept: %+v", n)
		}
	}
}

// TestNotificationLogIsBounded: a server chooses the methods and the params.
func TestNotificationLogIsBounded(t *testing.T) {
	var e managedServer
	e.redactor.addToken("s3cret-token")
	for i := range 1000 {
		e.recordNotification(fmt.Sprintf("notifications/%d/%s", i, strings.Repeat("x", 1000)), nil)
	}
	counts, recent := e.notifications.report()
	if len(counts) != maxCountedMethods+1 || counts[otherMethods] != 1000-maxCountedMethods {
		t.Errorf("%d methods are counted, %d as others", len(counts), counts[otherMethods])
	}
	if n := len(recent[0].Method); n > maxNotificationMethod+len("…") {
		t.Errorf("a method of %d bytes is kept", n)
	}
	for _, before := range []int{0, maxNotificationText - 5, maxNotificationText} {
		e.recordNotification(mcp.NoteMessage, []byte(strings.Repeat("x", before)+"s3cret-token"))
		_, recent = e.notifications.report()
		text := recent[len(recent)-1].Params
		if strings.Contains(text, "s3c") || len(text) > maxNotificationText+len("…") {
			t.Errorf("after %d bytes: %q", before, text[max(0, len(text)-40):])
		}
	}
}

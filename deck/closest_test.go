package deck

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck/label"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// TestTemplatesThatTakeLong has a server list many templates of which each takes as long as one may with a long URI: whose the URI is is
// found soon, and that of another server, which comes later, is found all the same.
func TestTemplatesThatTakeLong(t *testing.T) {
	slow, honest := listing("a"), listing("b")
	for i := range 200 {
		slow.Templates = append(slow.Templates, objects("uriTemplate", strings.Repeat("{+x}", 500)+fmt.Sprintf("%d", i))...)
	}
	honest.Templates = objects("uriTemplate", "file:///{+path}")
	for _, l := range []*drawbridge.Listing{&slow, &honest} {
		l.Capabilities = []byte(`{"resources":{}}`)
	}
	up := &fake{}
	d := open(t, up, Options{}, slow, honest)
	uri := "file:///" + strings.Repeat("x/", label.MaxURI/2-10)
	began := time.Now()
	_, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: wire.MethodResourcesRead, Params: objects("uri", uri)[0]})
	if took := time.Since(began); err != nil || took > time.Second {
		t.Errorf("it took %s: %v", took, err)
	}
	if told := up.told(); len(told) != 1 || !strings.HasPrefix(told[0], "b ") {
		t.Errorf("%.100q", told)
	}
}

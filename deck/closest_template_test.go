package deck

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/naming"
)

// TestTemplatesThatTakeLong has a server list many templates of which each takes as long as one may with a long URI.
// It is held against some of them only, and not against the one that fits best: whose the URI is is found soon, and
// the server that comes later is found.
func TestTemplatesThatTakeLong(t *testing.T) {
	slow, honest := listing("a"), listing("b")
	for i := range 40 {
		slow.Templates = append(slow.Templates, objects("uriTemplate", strings.Repeat("{+x}", 500)+
			fmt.Sprintf("%d", i))...)
	}
	slow.Templates = append(slow.Templates, objects("uriTemplate", "file:///x/x/{+path}")...)
	honest.Templates = objects("uriTemplate", "file:///{+path}")
	for _, l := range []*drawbridge.Listing{&slow, &honest} {
		l.Capabilities = []byte(`{"resources":{}}`)
	}
	up := &fake{}
	d := open(t, up, Options{}, slow, honest)
	uri := "file:///" + strings.Repeat("x/", naming.MaxURI/2-10)
	if _, err := d.Do(t.Context(), drawbridge.Call{Caller: ada, Method: mcp.MethodResourcesRead, Params: objects("uri",
		uri)[0]}); err != nil {
		t.Error(err)
	}
	if told := up.told(); len(told) != 1 || !strings.HasPrefix(told[0], "b ") {
		t.Errorf("%.100q", told)
	}
}

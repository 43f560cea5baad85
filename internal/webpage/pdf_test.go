package webpage

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/internal/process"
)

func TestMain(m *testing.M) {
	process.RunIfReaper()
	RunIfPDFReader()
	os.Exit(m.Run())
}

// newPDF returns a PDF file of one page with these lines, and with kids as its list of pages.
func newPDF(kids string, lines ...string) []byte {
	content := "BT /F1 12 Tf 72 700 Td "
	for _, l := range lines {
		content += "(" + l + ") Tj 0 -14 Td "
	}
	content += "ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [" + kids + "] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /FirstChar 32 /LastChar 126 /Widths [" +
			strings.Repeat("556 ", 95) + "] >>",
	}
	file := "%PDF-1.4\n"
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, o := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(file))
		file += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := len(file)
	return []byte(file + table + fmt.Sprintf("trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start))
}

func TestPDF(t *testing.T) {
	p := Page{URL: "https://example.com/a.pdf", Type: "application/pdf", Body: newPDF("3 0 R", "Hello PDF world", "Second line")}
	_, text, err := p.Text(t.Context(), true)
	if err != nil || text != "Hello PDF world\nSecond line" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestHostilePDF reads files that crash or stop a reader: only the process that reads them ends.
func TestHostilePDF(t *testing.T) {
	good := string(newPDF("3 0 R", "text"))
	for name, body := range map[string]string{
		"empty":        "",
		"no PDF":       "hello",
		"cut":          good[:len(good)/2],
		"own parent":   string(newPDF("2 0 R", "x")),
		"huge length":  strings.Replace(good, "/Length 4", "/Length 99999999999", 1),
		"huge count":   strings.Replace(good, "/Count 1", "/Count 2000000000", 1),
		"no start":     strings.Replace(good, "startxref", "startxxxx", 1),
		"deep":         strings.Replace(good, "/MediaBox [0 0 612 792]", "/MediaBox "+strings.Repeat("[", 100_000), 1),
		"wrong object": strings.Replace(good, "/Contents 4 0 R", "/Contents 1 0 R", 1),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		begun := time.Now()
		_, err := readPDF(ctx, []byte(body))
		cancel()
		t.Logf("%s: %v, %s", name, err, time.Since(begun))
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

func FuzzPDF(f *testing.F) {
	f.Add(newPDF("3 0 R", "text"))
	f.Fuzz(func(t *testing.T, body []byte) {
		var out strings.Builder
		if err := runPDFReader(strings.NewReader(string(body)), &out); err == nil && out.Len() > maxPDFText {
			t.Error(out.Len())
		}
	})
}

package doctor_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/drawbridge-mcp/drawbridge/internal/doctor"
)

func TestWritableLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := doctor.CheckDirWritable(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := doctor.CheckDirWritable(filepath.Join(dir, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

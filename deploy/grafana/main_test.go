package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/causeway-mirror/causeway/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// TestDashboardIsWhatItsSourceGives holds the checked-in file against the program.
func TestDashboardIsWhatItsSourceGives(t *testing.T) {
	t.Parallel()
	var made bytes.Buffer
	require.NoError(t, write(&made))
	kept, err := os.ReadFile("causeway.json")
	require.NoError(t, err)
	require.Equal(t, made.String(), string(kept), "make dashboard writes it anew")
}

// TestPanelsLieBesideEachOther finds none outside of the grid, none upon another, and no two of one id.
func TestPanelsLieBesideEachOther(t *testing.T) {
	t.Parallel()
	var made bytes.Buffer
	require.NoError(t, write(&made))
	var shown struct {
		Panels []struct {
			ID    int    `json:"id"`
			Title string `json:"title"`
			At    struct {
				X      int `json:"x"`
				Y      int `json:"y"`
				Width  int `json:"w"`
				Height int `json:"h"`
			} `json:"gridPos"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(made.Bytes(), &shown))
	require.Greater(t, len(shown.Panels), 30)
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range shown.Panels {
		require.NotEmpty(t, p.Title)
		require.False(t, ids[p.ID], p.Title)
		ids[p.ID] = true
		require.LessOrEqual(t, p.At.X+p.At.Width, columns, p.Title)
		for x := range p.At.Width {
			for y := range p.At.Height {
				cell := [2]int{p.At.X + x, p.At.Y + y}
				require.Empty(t, taken[cell], "%s lies upon it", p.Title)
				taken[cell] = p.Title
			}
		}
	}
}

"""What I know: the questions on all chapters, and which of them are due."""

from ui.chapter.exercises import draw_review, reviewed_chapters
from ui.chapter.frame import Frame

frame = Frame("review")
frame.question()
draw_review(reviewed_chapters(), "overview", "review-overview")

"""What I know: the questions on every chapter, and which of them are due."""

from ui.chapter.contents import all_chapters
from ui.chapter.exercises import draw_review
from ui.chapter.frame import Frame

frame = Frame("review")
frame.question()
draw_review(all_chapters()[1:], "overview", "review-overview")
